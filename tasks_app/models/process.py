"""Processes of the host, as they are heard."""

from __future__ import annotations

from django.db import models


class Process(models.Model):
    """A process that runs agents. It is alive while `until` is not over; one that ends in an orderly way is deleted."""

    origin = models.CharField(primary_key=True, max_length=100, help_text="Role, machine, pid, and a part by chance.")
    role = models.CharField(max_length=10, help_text="web or worker: the agents whose code runs there.")
    started_at = models.DateTimeField()
    until = models.DateTimeField(help_text="How long its last heartbeat is good for.")
    runs = models.IntegerField(help_text="Runs of agents that it had then.")

    def __str__(self) -> str:
        return self.origin
