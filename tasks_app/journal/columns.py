"""The parameters of the statement: each column of a batch as one array literal, in the order of its unnest."""

from __future__ import annotations

from collections.abc import Sequence

from tasks_app.journal.changes import Acceptance, AuditLine, Change, Creation
from tasks_app.push.config import StoredConfig
from tasks_app.tables.arrays import NULL, arrays, flag, moment, text
from tasks_app.tables.record import Event, HistoryEntry

_Row = tuple[str, ...]


def config_columns(configs: Sequence[StoredConfig]) -> list[str]:
    """Of push configs, for `config`."""
    return arrays([_config(c) for c in configs], 9)


def creation_columns(creations: Sequence[Creation]) -> list[str]:
    """Of creations, for `creation`."""
    return arrays([_creation(c) for c in creations], 17)


def change_columns(changes: Sequence[Change]) -> list[str]:
    """Of changes, for `change`."""
    return arrays([_change(c) for c in changes], 13)


def event_columns(changes: Sequence[Change]) -> list[str]:
    """Of the events of changes, for `logged`."""
    return arrays([_event(c.task_id, e) for c in changes for e in c.events], 10)


def message_columns(changes: Sequence[Change]) -> list[str]:
    """Of the messages of changes, for `spoken`."""
    return arrays([_message(c.task_id, m) for c in changes for m in c.messages], 7)


def acceptance_columns(changes: Sequence[Change]) -> list[str]:
    """Of the acceptances of changes, for `accepted`."""
    return arrays([_acceptance(c.task_id, c.acceptance) for c in changes if c.acceptance is not None], 5)


def audit_columns(changes: Sequence[Change]) -> list[str]:
    """Of the audit lines of changes, for `noted`."""
    return arrays([_audit(c.task_id, c.audit) for c in changes if c.audit is not None], 5)


def _config(c: StoredConfig) -> _Row:
    return (
        c.task_id,
        text(c.config_id),
        text(c.url),
        text(c.token),
        text(c.scheme),
        text(c.credentials),
        text(c.version),
        moment(c.created_at),
        str(c.cursor),
    )


def _creation(c: Creation) -> _Row:
    message, acceptance = c.message, c.acceptance
    return (
        c.task_id,
        str(c.agent_id),
        text(c.owner),
        text(c.context_id),
        text(c.status),
        moment(c.created_at),
        text(c.dialect),
        text(c.request),
        text(c.worker),
        text(message.message_id),
        NULL if acceptance is None else text(acceptance.digest),
        NULL if acceptance is None else text(acceptance.message_id),
        text(message.body),
        text(message.search),
        text(c.metadata),
        text(c.parent_id),
        moment(c.deadline_at),
    )


def _change(c: Change) -> _Row:
    return (
        c.task_id,
        str(c.version),
        str(c.attempt),
        str(c.state.number),
        text(c.status),
        moment(c.status_at),
        text(c.metadata),
        str(c.last_seq),
        str(c.message_count),
        str(c.new_attempt),
        text(c.worker),
        text(c.request),
        moment(c.deadline_at),
    )


def _event(task_id: str, e: Event) -> _Row:
    return (
        task_id,
        str(e.seq),
        str(e.kind.value),
        text(e.body),
        text(e.metadata),
        text(e.artifact_id),
        flag(e.append),
        flag(e.last_chunk),
        str(e.attempt),
        moment(e.created_at),
    )


def _message(task_id: str, m: HistoryEntry) -> _Row:
    return (
        task_id,
        str(m.position),
        text(m.message_id),
        str(m.role),
        text(m.body),
        text(m.search),
        moment(m.created_at),
    )


def _acceptance(task_id: str, a: Acceptance) -> _Row:
    return (str(a.agent_id), text(a.owner), text(a.message_id), task_id, text(a.digest))


def _audit(task_id: str, line: AuditLine) -> _Row:
    return (task_id, text(line.actor), text(line.action), text(line.agent), text(line.detail))
