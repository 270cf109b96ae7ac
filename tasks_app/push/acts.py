"""What people do to webhooks by hand. Each act leaves a line in the audit log; a worker sees it within a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from tasks_app.models import AuditEntry, PushConfig, Task

RESEND_MAX = 100
"""Events that may wait to be sent again."""


class ActError(Exception):
    """Nothing was done. The message is for the person."""


@dataclass(frozen=True, slots=True)
class Act:
    """Who does something to which webhook."""

    task_id: str
    config_id: str
    actor: str


def pause(act: Act) -> None:
    """Send nothing until somebody resumes it. What is on its way may still arrive, and counts."""
    with _changing(act, "pause", "Paused.") as (row, _):
        _require(row.paused_at is None, "It is paused already.")
        row.paused_at = timezone.now()


def resume(act: Act) -> None:
    """Send what has been waiting since the webhook was paused."""
    with _changing(act, "resume", "Resumed.") as (row, _):
        _require(row.paused_at is not None, "It is not paused.")
        row.paused_at = None
        _forgive(row)


def enable(act: Act) -> None:
    """Try a disabled webhook again, as if it had not failed before."""
    with _changing(act, "enable", "Enabled again.") as (row, _):
        _require(row.disabled_reason != "", "It is not disabled.")
        row.disabled_reason, row.disabled_at = "", None
        _forgive(row)


def retry_now(act: Act) -> None:
    """Make the next attempt at once."""
    with _changing(act, "retry", "The next attempt is made at once.") as (row, _):
        _require(row.due_at is not None, "Nothing is to be tried again.")
        row.due_at = None


def redeliver(act: Act, seq: int) -> None:
    """Send one event once more, beside the others: the cursor stays, and what comes of it is in the ledger only, unless
    the receiver says that it is gone for good."""
    with _changing(act, "redeliver", f"Event {seq} is sent again.") as (row, task):
        _require(0 < seq <= task.last_seq, f"The task has no event {seq}.")
        _resend(row, seq)


def send_test(act: Act) -> None:
    """Send the task as it is now, marked as a test."""
    with _changing(act, "test", "A test is sent.") as (row, _):
        _resend(row, 0)


def redeliver_from(act: Act, seq: int) -> None:
    """Begin again with an event: it and all later ones are sent in order. Whoever delivers now stops: the raised claim
    makes sure that this one does not move the cursor."""
    with _changing(act, "redeliver", f"All events from {seq} on are sent again.") as (row, task):
        _require(0 < seq <= task.last_seq, f"The task has no event {seq}.")
        row.cursor = seq - 1
        row.claim += 1
        row.lease_until = None
        _forgive(row)


@contextmanager
def _changing(act: Act, action: str, detail: str) -> Iterator[tuple[PushConfig, Task]]:
    """The config, locked, and its task; stored with what is due then, unless ActError is raised."""
    with transaction.atomic():
        task = Task.objects.select_related("agent").filter(pk=act.task_id).first()
        row = PushConfig.objects.select_for_update().filter(task=act.task_id, config_id=act.config_id).first()
        if task is None or row is None:
            raise ActError("The webhook is gone.")
        yield row, task
        row.last_seq = max(row.last_seq, task.last_seq)
        row.due_at = Now() if row.resend else _due(row)
        row.save()
        text = f"Webhook {row.config_id}: {detail}"
        AuditEntry.objects.create(
            actor=act.actor, action=f"webhook.{action}", agent=task.agent.slug, task_id=task.id, detail=text
        )


def _due(row: PushConfig) -> datetime | Now | None:
    """By the clock of the database, which says what is due."""
    if row.disabled_reason or row.paused_at is not None or row.cursor >= row.last_seq:
        return None
    return row.due_at or Now()


def _resend(row: PushConfig, seq: int) -> None:
    _require(seq not in row.resend, "That is about to be sent already.")
    _require(len(row.resend) < RESEND_MAX, f"{RESEND_MAX} events wait to be sent again already.")
    row.resend = [*row.resend, seq]


def _forgive(row: PushConfig) -> None:
    row.attempts, row.failing_since, row.due_at = 0, None, None


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ActError(otherwise)
