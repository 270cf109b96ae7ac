"""The runs of a task's agent, for the task page: those that a later attempt followed, and the newest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from protocol.states import INTERRUPTED, RUNNING, TaskState
from tasks_app import models

MOST_RUNS = 50


@dataclass(slots=True)
class RunLine:
    """One run. `ended_at` None: it goes on, and was heard of `heard_until` the latest. `outcome` is in words."""

    attempt: int
    worker: str
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str
    heard_until: datetime | None = None

    @property
    def lasted(self) -> timedelta | None:
        """From its start to its end."""
        return None if self.started_at is None or self.ended_at is None else self.ended_at - self.started_at


def runs(task: models.Task) -> list[RunLine]:
    """The newest runs of a task, oldest first."""
    rows = models.Execution.objects.filter(task=task).order_by("-attempt")[:MOST_RUNS]
    lines = [RunLine(r.attempt, r.worker, r.started_at, r.ended_at, _outcome(r)) for r in reversed(rows)]
    newest = _newest(task)
    return lines if newest is None else [*lines, newest]


def _newest(task: models.Task) -> RunLine | None:
    """The run in the task's own row; None while it is queued, and when it was ended from outside."""
    state = TaskState.from_number(task.state)
    if task.worker is None:
        return RunLine(task.attempt, "", None, None, "queued") if state in RUNNING else None
    if state in RUNNING:
        return RunLine(task.attempt, task.worker, task.started_at, None, "runs", task.lease_until)
    return RunLine(task.attempt, task.worker, task.started_at, task.status_at, _said(state))


def _outcome(row: models.Execution) -> str:
    """A run that was taken from its process, or one that ended before the next message came."""
    return "taken from its process" if row.fenced else _said(TaskState.from_number(row.state))


def _said(state: TaskState) -> str:
    if state is TaskState.UNSPECIFIED:
        return "answered with a message"
    text = state.name.replace("_", " ").lower()
    return f"waits: {text}" if state in INTERRUPTED else text
