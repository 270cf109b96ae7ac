"""How the health of a webhook looks: label, colour and icon, so that colour never carries the meaning alone."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F, Q

from tasks_app.models import PushConfig


@dataclass(frozen=True, slots=True)
class Health:
    """`name` stands in URLs, `key` names the colours of a state (`state-<key>`), `icon` a symbol of icons.svg.

    `rows` says which configs are so.
    """

    name: str
    key: str
    label: str
    icon: str
    rows: Q


_STARTED = Q(disabled_at__isnull=True, paused_at__isnull=True)
DISABLED = Health("disabled", "failed", "Disabled", "cross", Q(disabled_at__isnull=False))
PAUSED = Health("paused", "canceled", "Paused", "minus", Q(paused_at__isnull=False, disabled_at__isnull=True))
FAILING = Health("failing", "input-required", "Failing", "warning", _STARTED & Q(failing_since__isnull=False))
WAITING = Health(
    "waiting", "submitted", "Waiting", "clock", _STARTED & Q(failing_since__isnull=True, cursor__lt=F("task__last_seq"))
)
WELL = Health("well", "completed", "Up to date", "check", Q())

FILTERS = (FAILING, DISABLED, PAUSED, WAITING)
COUNTED = (FAILING, DISABLED, PAUSED)  # an index holds these alone, so they are quickly counted
BY_NAME = {health.name: health for health in FILTERS}


def health_of(row: PushConfig) -> Health:
    """That of a config, read with its task."""
    if row.disabled_at is not None:
        return DISABLED
    if row.paused_at is not None:
        return PAUSED
    if row.failing_since is not None:
        return FAILING
    return WAITING if row.cursor < row.task.last_seq else WELL
