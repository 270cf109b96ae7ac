"""Runs of agents."""

from __future__ import annotations

from django.db import models

from protocol.states import TaskState
from tasks_app.models.task import Task


class Execution(models.Model):
    """One run of an agent for a task, as it ended.

    The run that goes on is in the task's own row: attempt, worker, started_at and lease_until. The journal writes this
    row in the statement that ends the run, or that takes the task from it.
    """

    pk = models.CompositePrimaryKey("task_id", "attempt")
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, db_constraint=False, related_name="executions", db_index=False
    )
    attempt = models.IntegerField()
    worker = models.CharField(max_length=100, help_text="The process that it ran in.")
    started_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True, help_text="How long its last heartbeat was good for.")
    ended_at = models.DateTimeField()
    state = models.SmallIntegerField(
        choices=[(s.number, s.name) for s in TaskState], help_text="The task's state when the run had ended."
    )
    fenced = models.BooleanField(help_text="Whether somebody else ended it and nothing that it says counts any more.")

    def __str__(self) -> str:
        return f"{self.task_id} run {self.attempt}"
