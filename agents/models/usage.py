"""How often an agent is called, by whom and in which version."""

from __future__ import annotations

from django.db import models

from agents.models.agent import Agent


class Usage(models.Model):
    """What one caller did with one operation in one binding and version. The host's processes add to it (no row per
    call); there is nothing to edit."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="usage", db_index=False)
    binding = models.CharField(max_length=30)
    version = models.CharField(max_length=20, help_text="Of the protocol, such as 1.0.")
    operation = models.CharField(max_length=60)
    caller = models.CharField(max_length=100, help_text="Owner of the key; anonymous for callers without one.")
    calls = models.BigIntegerField()
    errors = models.BigIntegerField(help_text="Calls that were answered with an error.")
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()

    class Meta:
        ordering = ["-last_seen"]
        verbose_name_plural = "usage"
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "binding", "version", "operation", "caller"], name="agents_usage_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.operation} by {self.caller}"
