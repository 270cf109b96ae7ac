"""What was asked to be erased, until it is."""

from __future__ import annotations

from django.db import models


class Erasure(models.Model):
    """Everything of one principal, or of one context of an agent, is to go. A worker goes on with it until it is done.

    `owner` and `context_id` are emptied soon after that; `reference` stays and tells who it was to those who know the
    name (`retention.scope`).
    """

    id = models.BigAutoField(primary_key=True)
    requested_by = models.CharField(max_length=150, help_text="User name, or the command.")
    requested_at = models.DateTimeField(auto_now_add=True)
    owner = models.CharField(max_length=120, blank=True)
    agent = models.CharField(max_length=63, blank=True, help_text="Slug; empty: every agent.")
    context_id = models.CharField(max_length=255, blank=True)
    with_keys = models.BooleanField(db_default=False, default=False, help_text="The owner's API keys go too.")
    reference = models.CharField(max_length=40)
    tasks = models.BigIntegerField(db_default=0, default=0, help_text="Tasks that are gone so far.")
    problem = models.TextField(db_default="", blank=True, help_text="Why the last try did not get to the end.")
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.reference
