"""The parameters of the statement: each column of a batch as one array literal, in the order of its unnest."""

from __future__ import annotations

from collections.abc import Sequence

from tasks_app.arrays import plain_array, text_array, time_array
from tasks_app.journal.changes import Acceptance, AuditLine, Change, Creation
from tasks_app.push.config import StoredConfig


def config_columns(rows: Sequence[StoredConfig]) -> list[str]:
    """Of StoredConfig, for `config`."""
    return [
        plain_array(r.task_id for r in rows),
        text_array(r.config_id for r in rows),
        text_array(r.url for r in rows),
        text_array(r.token for r in rows),
        text_array(r.scheme for r in rows),
        text_array(r.credentials for r in rows),
        text_array(r.version for r in rows),
        time_array(r.created_at for r in rows),
        plain_array(r.cursor for r in rows),
    ]


def creation_columns(rows: Sequence[Creation]) -> list[str]:
    """Of Creation, for `creation`."""
    return [
        plain_array(r.task_id for r in rows),
        plain_array(r.agent_id for r in rows),
        text_array(r.owner for r in rows),
        text_array(r.context_id for r in rows),
        text_array(r.status for r in rows),
        time_array(r.created_at for r in rows),
        text_array(r.dialect for r in rows),
        text_array(r.request for r in rows),
        text_array(r.worker for r in rows),
        text_array(r.message.message_id for r in rows),
        text_array(r.acceptance.digest if r.acceptance else None for r in rows),
        text_array(r.acceptance.message_id if r.acceptance else None for r in rows),
        text_array(r.message.body for r in rows),
        text_array(r.message.search for r in rows),
        text_array(r.metadata for r in rows),
        text_array(r.parent_id for r in rows),
        time_array(r.deadline_at for r in rows),
    ]


def change_columns(rows: Sequence[Change]) -> list[str]:
    """Of Change, for `change`."""
    return [
        plain_array(r.task_id for r in rows),
        plain_array(r.version for r in rows),
        plain_array(r.attempt for r in rows),
        plain_array(r.state.number for r in rows),
        text_array(r.status for r in rows),
        time_array(r.status_at for r in rows),
        text_array(r.metadata for r in rows),
        plain_array(r.last_seq for r in rows),
        plain_array(r.message_count for r in rows),
        plain_array(r.new_attempt for r in rows),
        text_array(r.worker for r in rows),
        text_array(r.request for r in rows),
        time_array(r.deadline_at for r in rows),
    ]


def event_columns(changes: Sequence[Change]) -> list[str]:
    """Of the events of changes, for `logged`."""
    rows = [(c.task_id, e) for c in changes for e in c.events]
    return [
        plain_array(task_id for task_id, _ in rows),
        plain_array(e.seq for _, e in rows),
        plain_array(e.kind.value for _, e in rows),
        text_array(e.body for _, e in rows),
        text_array(e.metadata for _, e in rows),
        text_array(e.artifact_id for _, e in rows),
        plain_array("t" if e.append else "f" for _, e in rows),
        plain_array("t" if e.last_chunk else "f" for _, e in rows),
        plain_array(e.attempt for _, e in rows),
        time_array(e.created_at for _, e in rows),
    ]


def message_columns(changes: Sequence[Change]) -> list[str]:
    """Of the messages of changes, for `spoken`."""
    rows = [(c.task_id, m) for c in changes for m in c.messages]
    return [
        plain_array(task_id for task_id, _ in rows),
        plain_array(m.position for _, m in rows),
        text_array(m.message_id for _, m in rows),
        plain_array(m.role for _, m in rows),
        text_array(m.body for _, m in rows),
        text_array(m.search for _, m in rows),
        time_array(m.created_at for _, m in rows),
    ]


def acceptance_columns(rows: Sequence[tuple[str, Acceptance]]) -> list[str]:
    """Of (task id, acceptance), for `accepted`."""
    return [
        plain_array(a.agent_id for _, a in rows),
        text_array(a.owner for _, a in rows),
        text_array(a.message_id for _, a in rows),
        plain_array(task_id for task_id, _ in rows),
        text_array(a.digest for _, a in rows),
    ]


def audit_columns(rows: Sequence[tuple[str, AuditLine]]) -> list[str]:
    """Of (task id, audit line), for `noted`."""
    return [
        plain_array(task_id for task_id, _ in rows),
        text_array(line.actor for _, line in rows),
        text_array(line.action for _, line in rows),
        text_array(line.agent for _, line in rows),
        text_array(line.detail for _, line in rows),
    ]
