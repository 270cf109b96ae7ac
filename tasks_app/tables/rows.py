"""Rows of the tables as records and events, and the columns that they are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import json

from protocol.states import TaskState
from tasks_app.tables.record import Event, EventKind, TaskRecord

TASK_COLUMNS = """t.id, t.agent_id, t.owner, t.context_id, t.state, t.status, t.status_at, t.created_at, t.metadata,
    t.last_seq, t.message_count, t.version, t.attempt, t.worker,
    (t.lease_until > now()) IS TRUE, t.request, t.deadline_at, t.waiting_attempt"""
EVENT_COLUMNS = "task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt, created_at"
# History and artifacts come as one text each, their entries between control characters, which JSON never holds raw.
# The task's own counters cut off what was stored after the row was read.
_ENTRY, _FIELD = "\x1e", "\x1f"
_HISTORY = """(SELECT string_agg(m.body, E'\\x1e' ORDER BY m.position) FROM tasks_app_message m
    WHERE m.task_id = t.id AND m.position <= t.message_count)"""
_ARTIFACTS = f"""(SELECT string_agg(concat_ws(E'\\x1f', e.seq, e.append, e.last_chunk, e.attempt,
        extract(epoch FROM e.created_at), to_json(e.artifact_id), coalesce(e.metadata, ''), e.body),
        E'\\x1e' ORDER BY e.seq)
    FROM tasks_app_event e WHERE e.task_id = t.id AND e.kind = {EventKind.ARTIFACT.value} AND e.seq <= {{until}})"""


def full_tasks(history: bool = True, artifacts: bool = True, until: str = "t.last_seq") -> str:
    """SELECT … FROM tasks: rows for `full_record`, as of one moment; artifacts as they were at the seq `until`."""
    said = _HISTORY if history else "NULL"
    made = _ARTIFACTS.format(until=until) if artifacts else "NULL"
    return f"SELECT {TASK_COLUMNS}, {said}, {made} FROM tasks_app_task t"


def task_record(row: tuple[Any, ...]) -> TaskRecord:
    """A record of a row of TASK_COLUMNS, without history and artifacts."""
    task_id, agent_id, owner, context_id, state, *rest = row
    return TaskRecord(task_id, agent_id, owner, context_id, TaskState.from_number(state), *rest)


def full_record(row: tuple[Any, ...]) -> TaskRecord:
    """A record of a row of `full_tasks`."""
    *columns, history, artifacts = row
    record = task_record(tuple(columns))
    if history:
        record.history = history.split(_ENTRY)
    if artifacts:
        record.chunks = [_chunk(entry.split(_FIELD)) for entry in artifacts.split(_ENTRY)]
    return record


def _chunk(fields: list[str]) -> Event:
    seq, append, last_chunk, attempt, epoch, artifact_id, metadata, body = fields
    return Event(
        seq=int(seq),
        kind=EventKind.ARTIFACT,
        body=body,
        created_at=datetime.fromtimestamp(float(epoch), UTC),
        attempt=int(attempt),
        metadata=metadata or None,
        artifact_id=json.decode(artifact_id, type=str),
        append=append == "t",
        last_chunk=last_chunk == "t",
    )


def event(row: tuple[Any, ...]) -> Event:
    """An event of a row of EVENT_COLUMNS."""
    _, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt, created_at = row
    state = _state_of(body) if kind == EventKind.STATUS else None
    return Event(seq, EventKind(kind), body, created_at, attempt, state, metadata, artifact_id, append, last_chunk)


def _state_of(status: str) -> TaskState:
    """The state in a stored TaskStatus, which the journal writes with `state` first."""
    start = len('{"state":"')
    return TaskState(status[start : status.index('"', start)])
