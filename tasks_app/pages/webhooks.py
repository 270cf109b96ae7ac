"""The push configs of a task, for the task page. Their secrets are not even read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tasks_app import models
from tasks_app.push.config import CONFIGS_MAX


@dataclass(slots=True)
class Webhook:
    """One config: it has taken the events up to `cursor`, of those up to `wanted`. `next_try` None: nothing waits."""

    id: str
    url: str
    cursor: int
    wanted: int
    next_try: datetime | None
    attempts: int
    problem: str


def webhooks(task: models.Task) -> list[Webhook]:
    """The configs of a task by id."""
    rows = models.PushConfig.objects.filter(task=task).defer("token", "credentials").order_by("config_id")
    return [
        Webhook(
            id=row.config_id,
            url=row.url,
            cursor=row.cursor,
            wanted=max(task.last_seq, row.cursor),
            next_try=row.due_at,
            attempts=row.attempts,
            problem=row.disabled_reason or row.last_error,
        )
        for row in rows[:CONFIGS_MAX]
    ]
