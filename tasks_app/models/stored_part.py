"""Big parts of messages and artifacts."""

from __future__ import annotations

from django.db import models

from agents.models import Agent


class StoredPart(models.Model):
    """The content of one part (§4.1.6) that is kept in a file of Django's default storage instead of in a body."""

    id = models.CharField(primary_key=True, max_length=36)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False)
    task_id = models.CharField(max_length=36)
    name = models.CharField(max_length=255, help_text="Its name in the storage.")
    size = models.BigIntegerField(help_text="In bytes, as the file has them.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of these bytes, in hexadecimal digits.")
    media_type = models.TextField(blank=True)
    filename = models.TextField(blank=True, help_text="As the part says it.")
    created_at = models.DateTimeField()
    confirmed = models.BooleanField(
        db_default=False, help_text="Whether it was found to be named by its task, a day after it was stored."
    )

    class Meta:
        indexes = [
            models.Index(fields=["task_id"], name="stored_part_of_task"),
            models.Index(fields=["agent"], name="stored_part_of_agent", include=["size"]),
            models.Index(fields=["created_at"], name="stored_part_unconfirmed", condition=models.Q(confirmed=False)),
        ]

    def __str__(self) -> str:
        return self.name
