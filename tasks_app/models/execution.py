"""Runs of agents."""

from __future__ import annotations

from django.db import models

from protocol.states import TaskState
from tasks_app.models.task import Task


class Execution(models.Model):
    """One run of an agent for a task, which a later attempt has followed.

    The newest run is in the task's own row, also when it has ended: attempt, worker, started_at, lease_until, and then
    state and status_at. So a task that is done in one run costs no row here. The statement that raises the attempt
    moves the older run: `tasks_app.journal.statement` or `tasks_app.journal.leases`.
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
        choices=[(s.number, s.name) for s in TaskState], help_text="The task's state when the run ended."
    )
    fenced = models.BooleanField(help_text="Whether somebody else ended it and nothing that it says counts any more.")

    def __str__(self) -> str:
        return f"{self.task_id} run {self.attempt}"
