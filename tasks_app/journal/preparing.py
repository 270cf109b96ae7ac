"""Which statement a batch needs, and its parameters in their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tasks_app.journal import rows
from tasks_app.journal.changes import Change, Creation
from tasks_app.journal.statement import EVENTS_OF_ONE, name_of_batch, name_of_one
from tasks_app.tables.arrays import array

CHANNEL = "a2a_events"
_NOTIFY_IDS = 150  # ids of 36 characters and a seq in one payload, under NOTIFY's 8,000 bytes

Prepared = tuple[str, list[str | None]]


def prepare(origin: str, batch: Sequence[Creation | Change]) -> Prepared:
    """The name of the statement for a batch, and its parameters. `origin` is the process that writes."""
    creations = [w for w in batch if isinstance(w, Creation)]
    changes = [w for w in batch if isinstance(w, Change)]
    told = _payloads(origin, creations, changes)
    if len(creations) == 1 and not changes and not _has_rare_parts(creations[0]):
        return name_of_one("create"), [*rows.creation_row(creations[0]), CHANNEL, *told, origin]
    if len(changes) == 1 and not creations and _is_plain(changes[0]):
        (c,) = changes
        events = chain.from_iterable(rows.event_row(c.task_id, e) for e in c.events)
        return name_of_one("change", len(c.events)), [*rows.change_row(c), origin, *events, CHANNEL, *told, origin]
    parts = _batch(origin, creations, changes)
    payloads = rows.PAYLOADS.arrays([(payload,) for payload in told])
    return name_of_batch(tuple(parts)), [*chain.from_iterable(parts.values()), CHANNEL, *payloads, origin]


def _is_plain(c: Change) -> bool:
    return not (_has_rare_parts(c) or c.messages or c.acceptance or c.new_attempt > c.attempt) and (
        0 < len(c.events) <= EVENTS_OF_ONE
    )


def _has_rare_parts(c: Creation | Change) -> bool:
    return c.push_config is not None or c.has_stored_parts or (isinstance(c, Change) and c.audit is not None)


def _batch(origin: str, creations: Sequence[Creation], changes: Sequence[Change]) -> dict[str, list[str]]:
    """The parts of the statement, in its order, and their parameters: a literal for each column."""
    parts: dict[str, list[str]] = {}
    raised = [c for c in changes if c.new_attempt > c.attempt]
    unheld = [c.task_id for c in raised if c.if_unheld]
    writes: list[Creation | Change] = [*creations, *changes]
    everything = bool(unheld) or any(map(_has_rare_parts, writes))
    if everything:
        configs = [rows.config_row(c.push_config) for c in writes if c.push_config is not None]
        parts["config"] = [*rows.CONFIGS.arrays(configs)]
        parts["files"] = [array(c.task_id for c in writes if c.has_stored_parts)]
        parts["unheld"] = [array(unheld)]
    if creations or everything:
        parts["create"] = [*rows.CREATIONS.arrays([rows.creation_row(c) for c in creations])]
    if changes or everything:
        events = [rows.event_row(c.task_id, e) for c in changes for e in c.events]
        changed = rows.CHANGES.arrays([rows.change_row(c) for c in changes])
        parts["change"] = [*changed, origin, *rows.EVENTS.arrays(events)]
    if everything or any(c.messages for c in changes):
        messages = [rows.message_row(c.task_id, m) for c in changes for m in c.messages]
        parts["speak"] = [*rows.MESSAGES.arrays(messages)]
    if everything or any(c.acceptance for c in changes):
        accepted = [rows.acceptance_row(c.task_id, c.acceptance) for c in changes if c.acceptance is not None]
        parts["accept"] = [*rows.ACCEPTANCES.arrays(accepted)]
    if everything or raised:
        parts["end"] = []
    if everything:
        lines = [rows.audit_row(c.task_id, c.audit) for c in changes if c.audit is not None]
        parts["note"] = [*rows.AUDIT_LINES.arrays(lines)]
    return parts


def _payloads(origin: str, creations: Sequence[Creation], changes: Sequence[Change]) -> list[str]:
    """`<origin> <task id>:<last seq> …`: who wrote, and how far each task's log goes now."""
    news = list(
        chain((f"{c.task_id}:0" for c in creations), (f"{c.task_id}:{c.last_seq}" for c in changes if c.events))
    )
    return [" ".join([origin, *news[i : i + _NOTIFY_IDS]]) for i in range(0, len(news), _NOTIFY_IDS)]
