"""What hangs on a task beside its own story, for its page: tasks that it delegated, and what people did with it."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app import models
from tasks_app.pages import states

MOST_CHILDREN = 100
MOST_ENTRIES = 100


@dataclass(slots=True)
class Child:
    """A task that this one's agent delegated to another agent."""

    id: str
    agent: str
    look: states.Look


def children(task: models.Task) -> list[Child]:
    """The first tasks that were delegated, in that order."""
    rows = models.Task.objects.filter(parent_id=task.id).order_by("id").values_list("id", "agent__slug", "state")
    return [Child(task_id, slug, states.BY_NUMBER[state]) for task_id, slug, state in rows[:MOST_CHILDREN]]


def audit(task: models.Task) -> list[models.AuditEntry]:
    """What people did with the task, the newest first."""
    return list(models.AuditEntry.objects.filter(task_id=task.id).exclude(task_id="").order_by("-id")[:MOST_ENTRIES])
