"""A task as it was at an earlier event: what a stream that is resumed begins with, and what webhooks of 0.3 tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from msgspec import Raw

from protocol.states import TaskState
from tasks_app.tables.record import Event, TaskRecord, initial_status

_Members = dict[str, Raw]


@dataclass(frozen=True, slots=True)
class Past:
    """What a task's record does not tell of its past: all its status events, and when each follow-up was heard."""

    statuses: list[Event]
    follow_ups: list[datetime]


def task_at(record: TaskRecord, seq: int, past: Past) -> TaskRecord:
    """The task as it was at event `seq`, so that what follows neither repeats nor skips anything.

    It is exact but for metadata that was there before the agent's first word and that the agent has replaced since.
    """
    statuses = [s for s in past.statuses if s.seq <= seq]
    state, status = TaskState.SUBMITTED, initial_status(record.created_at)
    if statuses:
        state, status = statuses[-1].state or record.state, statuses[-1].body
    return replace(
        record,
        state=state,
        status=status,
        chunks=[c for c in record.chunks if c.seq <= seq],
        history=record.history[: _heard(statuses, past.follow_ups)],
        metadata=_metadata(record.metadata, past.statuses, seq),
        last_seq=seq,
    )


def _heard(statuses: list[Event], follow_ups: Sequence[datetime]) -> int:
    """How long the history was once the last of `statuses` had been set.

    A status that is replaced leaves its message there. A follow-up comes with the status WORKING, of the same time.
    """
    begun = {s.created_at for s in statuses if s.state is TaskState.WORKING}
    said = sum('"message"' in s.body for s in statuses[:-1])
    return 1 + said + sum(at in begun for at in follow_ups)


def _metadata(newest: str | None, statuses: list[Event], seq: int) -> str | None:
    """The task's metadata at `seq`: each status adds its own, member by member."""
    if newest is None or not any(s.metadata and s.seq > seq for s in statuses):
        return newest
    added = [(s.seq, msgspec.json.decode(s.metadata, type=_Members)) for s in statuses if s.metadata]
    later = {name for _, members in added for name in members}
    merged = {name: value for name, value in msgspec.json.decode(newest, type=_Members).items() if name not in later}
    for at, members in added:
        if at <= seq:
            merged |= members
    return msgspec.json.encode(merged).decode() if merged else None
