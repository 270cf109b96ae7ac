"""Asking for an erasure, and what it would take."""

from __future__ import annotations

from dataclasses import dataclass

from celery import current_app
from django.core.exceptions import ValidationError
from django.db import connection

from agents.models import ApiKey, Usage
from protocol.states import TaskState
from tasks_app.models import Erasure
from tasks_app.retention.deleting import ENDED
from tasks_app.retention.scope import UNFINISHED, Scope

KEEP_HOUSE = "tasks_app.retention"
"""The Celery task that goes on with erasures."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is there of a scope: tasks by agent (slug), owner and state, keys and usage rows that name the owner."""

    tasks: list[tuple[str, str, TaskState, int]]
    keys: int
    usage: int

    @property
    def total(self) -> int:
        """All tasks, exchanges that were answered with a Message too."""
        return sum(row[3] for row in self.tasks)

    @property
    def unfinished(self) -> int:
        """Those that are cancelled first."""
        return sum(row[3] for row in self.tasks if row[2].number in UNFINISHED)


def find(scope: Scope) -> Found:
    """Count what an erasure would take now. What the tasks have delegated is not counted, and goes too."""
    counting = "a.slug, t.owner, t.state, count(*)"
    sql = f"{scope.tasks_sql('all', counting)} GROUP BY a.slug, t.owner, t.state ORDER BY a.slug, t.owner, t.state"
    with connection.cursor() as cursor:
        cursor.execute(sql, {**scope.parameters, "all": [*UNFINISHED, *ENDED]})
        rows = cursor.fetchall()
    tasks = [(slug, owner, TaskState.from_number(state), number) for slug, owner, state, number in rows]
    if not scope.is_person:
        return Found(tasks, 0, 0)
    keys = ApiKey.objects.filter(owner=scope.owner).count()
    return Found(tasks, keys, Usage.objects.filter(caller=scope.owner).count())


def request_erasure(scope: Scope, requested_by: str, with_keys: bool = False) -> Erasure:
    """Have everything of a scope erased; asked for again while that goes on, it is the same erasure.

    Raises ValidationError, naming the field.
    """
    scope.check()
    if with_keys and not scope.is_person:
        raise ValidationError({"with_keys": "Keys go with everything of their owner, not with one agent or context."})
    same = Erasure.objects.filter(
        owner=scope.owner, agent=scope.agent, context_id=scope.context_id, finished_at=None
    ).first()
    if same is not None:
        if with_keys and not same.with_keys:
            Erasure.objects.filter(pk=same.pk).update(with_keys=True)
        return same
    return Erasure.objects.create(
        requested_by=requested_by,
        owner=scope.owner,
        agent=scope.agent,
        context_id=scope.context_id,
        with_keys=with_keys,
        reference=scope.reference,
    )


def ring() -> None:
    """Have a worker begin at once. Without a broker it begins a few minutes later."""
    current_app.send_task(KEEP_HOUSE, retry=False, ignore_result=True)
