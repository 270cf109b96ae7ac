"""What became of a batch whose connection broke: asked of the database over another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg

from tasks_app.journal.changes import Change, Creation

BACKEND = "a2a_backend"
_NAME = "pid || ' ' || extract(epoch FROM backend_start)"
STATEMENTS = {BACKEND: f"SELECT {_NAME} FROM pg_stat_activity WHERE pid = pg_backend_pid()"}
"""The name of a connection's backend, which no later one has."""

_STANDBY = "SELECT pg_is_in_recovery()"
_AT_WORK = f"SELECT pid, state FROM pg_stat_activity WHERE {_NAME} = %s"
_END = "SELECT pg_terminate_backend(%s, 1000)"
_READ_BACK = """SELECT t.id, t.version, t.worker, e.body, e.created_at FROM unnest(%s::text[], %s::int[]) AS w(id, seq)
    JOIN tasks_app_task t ON t.id = w.id LEFT JOIN tasks_app_event e ON e.task_id = w.id AND e.seq = w.seq"""


class OpenOutcomeError(psycopg.OperationalError):
    """It cannot be said yet what became of a batch."""


async def stored_writes(dsn: str, backend: str, batch: Sequence[Creation | Change]) -> set[str]:
    """Ids of the tasks whose write is stored; the others' are not, and will not be by what was sent to `backend`.

    Raises OpenOutcomeError, or another psycopg.Error, while that cannot be said.
    """
    firsts = [w.events[0].seq if isinstance(w, Change) and w.events else 0 for w in batch]
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        if await _rows(connection, _STANDBY) == [(True,)]:
            raise OpenOutcomeError("a standby may not have yet what is stored")
        await _see_the_end(connection, backend)
        rows = await _rows(connection, _READ_BACK, [[w.task_id for w in batch], firsts])
        stored = {row[0]: row[1:] for row in rows}
    return {w.task_id for w in batch if w.task_id in stored and _is_stored(w, stored[w.task_id])}


async def _see_the_end(connection: psycopg.AsyncConnection, backend: str) -> None:
    """A statement goes on without its connection, as one that waits for a lock does; none may arrive any more either.
    Raises OpenOutcomeError while one goes on."""
    for pid, state in await _rows(connection, _AT_WORK, [backend]):
        if state == "active" or await _rows(connection, _END, [pid]) != [(True,)]:
            raise OpenOutcomeError("the statement goes on without its connection")


async def _rows(
    connection: psycopg.AsyncConnection, sql: LiteralString, parameters: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    return await (await connection.execute(sql, parameters)).fetchall()


def _is_stored(write: Creation | Change, row: tuple[Any, ...]) -> bool:
    """Whether this very write is in the database. Version and attempt do not tell: a rival's are the same, and more
    may have been written since. Its first event does; a claim has none, but a name."""
    version, worker, body, created_at = row
    if isinstance(write, Creation):
        return True
    if write.events:
        return bool((body, created_at) == (write.events[0].body, write.events[0].created_at))
    return bool(version > write.version and worker == write.worker)
