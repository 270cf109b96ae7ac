"""The rows that the statement is given: what a write is, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks_app.journal.changes import Acceptance, AuditLine, Change, Creation
from tasks_app.push.config import StoredConfig
from tasks_app.tables.arrays import array, flag, printed, texts
from tasks_app.tables.record import Event, HistoryEntry

Row = tuple[str | None, ...]
_QUOTED = ("text", "timestamptz")


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of parameters called `name`, with the names and types of its columns."""

    name: str
    columns: tuple[tuple[str, str], ...]

    def of_arrays(self) -> str:
        """In SQL, where each column is one parameter."""
        return f"unnest({', '.join(f'%s::{kind}[]' for _, kind in self.columns)}) AS {self._head()}"

    def of_values(self, rows: int) -> str:
        """In SQL, where each value of so many rows is a parameter, row by row: less work for the database if they are
        few."""
        row = f"({', '.join(f'%s::{kind}' for _, kind in self.columns)})"
        return f"(VALUES {', '.join([row] * rows)}) AS {self._head()}"

    def _head(self) -> str:
        return f"{self.name}({', '.join(name for name, _ in self.columns)})"

    def arrays(self, rows: Sequence[Row]) -> Iterator[str]:
        """The parameters of `of_arrays`."""
        columns = zip(*rows, strict=True) if rows else [()] * len(self.columns)
        for (_, kind), column in zip(self.columns, columns, strict=True):
            yield texts(column) if kind in _QUOTED else array(column)


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, kind) for name, kind in (column.split() for column in text.split(",")))


CONFIGS = Rows(
    "k",
    _columns(
        "task_id text, config_id text, url text, token text, scheme text, credentials text, version text,"
        "created_at timestamptz, cursor int"
    ),
)
CREATIONS = Rows(
    "i",
    _columns(
        "id text, agent_id bigint, owner text, context_id text, status text, created_at timestamptz, dialect text,"
        "request text, worker text, message_id text, digest text, accepted_id text, body text, search text,"
        "metadata text, parent_id text, deadline_at timestamptz"
    ),
)
CHANGES = Rows(
    "i",
    _columns(
        "id text, version int, attempt int, old_state smallint, state smallint, status text, status_at timestamptz,"
        "metadata text, last_seq int, message_count int, new_attempt int, worker text, request text,"
        "deadline_at timestamptz"
    ),
)
EVENTS = Rows(
    "e",
    _columns(
        "task_id text, seq int, kind smallint, body text, metadata text, artifact_id text, append bool,"
        "last_chunk bool, attempt int, created_at timestamptz"
    ),
)
MESSAGES = Rows(
    "m",
    _columns(
        "task_id text, position int, message_id text, role smallint, body text, search text, created_at timestamptz"
    ),
)
ACCEPTANCES = Rows("a", _columns("agent_id bigint, owner text, message_id text, task_id text, digest text"))
PAYLOADS = Rows("p", _columns("payload text"))
AUDIT_LINES = Rows("n", _columns("task_id text, actor text, action text, agent text, detail text"))


def config_row(c: StoredConfig) -> Row:
    """Of CONFIGS."""
    return (
        c.task_id,
        c.config_id,
        c.url,
        c.token,
        c.scheme,
        c.credentials,
        c.version,
        printed(c.created_at),
        str(c.cursor),
    )


def creation_row(c: Creation) -> Row:
    """Of CREATIONS."""
    message, acceptance = c.message, c.acceptance
    return (
        c.task_id,
        str(c.agent_id),
        c.owner,
        c.context_id,
        c.status,
        printed(c.created_at),
        c.dialect,
        c.request,
        c.worker,
        message.message_id,
        None if acceptance is None else acceptance.digest,
        None if acceptance is None else acceptance.message_id,
        message.body,
        message.search,
        c.metadata,
        c.parent_id,
        printed(c.deadline_at),
    )


def change_row(c: Change) -> Row:
    """Of CHANGES."""
    return (
        c.task_id,
        str(c.version),
        str(c.attempt),
        str(c.old_state.number),
        str(c.state.number),
        c.status,
        printed(c.status_at),
        c.metadata,
        str(c.last_seq),
        str(c.message_count),
        str(c.new_attempt),
        c.worker,
        c.request,
        printed(c.deadline_at),
    )


def event_row(task_id: str, e: Event) -> Row:
    """Of EVENTS."""
    return (
        task_id,
        str(e.seq),
        str(e.kind.value),
        e.body,
        e.metadata,
        e.artifact_id,
        flag(e.append),
        flag(e.last_chunk),
        str(e.attempt),
        printed(e.created_at),
    )


def message_row(task_id: str, m: HistoryEntry) -> Row:
    """Of MESSAGES."""
    return (task_id, str(m.position), m.message_id, str(m.role), m.body, m.search, printed(m.created_at))


def acceptance_row(task_id: str, a: Acceptance) -> Row:
    """Of ACCEPTANCES."""
    return (str(a.agent_id), a.owner, a.message_id, task_id, a.digest)


def audit_row(task_id: str, line: AuditLine) -> Row:
    """Of AUDIT_LINES."""
    return (task_id, line.actor, line.action, line.agent, line.detail)
