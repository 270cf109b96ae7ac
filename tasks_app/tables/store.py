"""Reading tasks off the hot path of the ORM: everything that is asked for at one moment is read in one statement."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import ReadOnlySqlTransaction
from psycopg_pool import AsyncConnectionPool

from protocol.errors import UnavailableError
from tasks_app.tables.loader import PATIENCE_SECONDS, RETRY_SECONDS, Loader
from tasks_app.tables.passing import may_pass
from tasks_app.tables.past import Past
from tasks_app.tables.record import Event, EventKind, TaskRecord
from tasks_app.tables.rows import EVENT_COLUMNS, event, full_record, full_tasks
from tasks_app.tables.together import Together

# The size of a body is known without reading it. A page has one event at least.
_PAGED = f"""SELECT {EVENT_COLUMNS} FROM (
        SELECT e.*, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS before FROM (
            SELECT * FROM tasks_app_event WHERE task_id = {{task_id}} AND seq > {{after}} ORDER BY seq LIMIT %(events)s
        ) e) page
    WHERE before < %(bytes)s"""
_EVENTS_PAGE = f"{_PAGED.format(task_id='%(task_id)s', after='%(after)s')} ORDER BY seq"
_EVENTS_AFTER = f"""SELECT e.* FROM unnest(%(ids)s::text[], %(seqs)s::int[]) AS c(id, after)
    CROSS JOIN LATERAL ({_PAGED.format(task_id="c.id", after="c.after")}) e ORDER BY task_id, seq"""
_UNTIL = f"{full_tasks(until='least(t.last_seq, %(until)s)')} WHERE t.id = %(id)s"
_EXISTING = "SELECT id FROM tasks_app_task WHERE id = ANY(%s)"
_STATUSES = f"""SELECT {EVENT_COLUMNS} FROM tasks_app_event
    WHERE task_id = %s AND kind = {EventKind.STATUS.value} ORDER BY seq"""
_FOLLOW_UPS = """SELECT created_at FROM tasks_app_message
    WHERE task_id = %s AND position > 1 AND role = 1 ORDER BY position"""
_RECEIPT = """SELECT task_id, digest FROM tasks_app_receipt WHERE agent_id = %s AND owner = %s AND message_id = %s"""


class Page(NamedTuple):
    """How much of a log is read at a time: at most `events`, and no more once their bodies have `size` bytes."""

    events: int
    size: int


class Store:
    """Reads for one process and event loop, over a small pool. For `poll_seconds` at most it polls for a task instead
    of sleeping until it comes."""

    def __init__(self, dsn: str, poll_seconds: float = 0) -> None:
        self.pool = AsyncConnectionPool(
            dsn, min_size=1, max_size=6, open=False, kwargs={"autocommit": True, "prepare_threshold": 0}
        )
        self._loader = Loader(dsn, poll_seconds)
        self._single_rows = Together(partial(self.load_many, history=False, artifacts=False))

    async def start(self) -> None:
        """Open the pool. Raises `psycopg_pool.PoolTimeout` when the database cannot be reached."""
        await self.pool.open(wait=True, timeout=10)

    async def stop(self) -> None:
        """Close the pool."""
        await self._loader.stop()
        await self._single_rows.stop()
        await self.pool.close()

    async def load(self, task_id: str) -> TaskRecord | None:
        """The task with its history and artifacts, as committed now. Callers must not change it: it may be shared."""
        return await self._loader.load(task_id)

    async def load_row(self, task_id: str) -> TaskRecord | None:
        """The task without its history and artifacts, which may be large, for who only has to know how it is. Callers
        must not change it. Many who ask at once take one connection."""
        return await self._single_rows.get(task_id)

    async def load_until(self, task_id: str, seq: int) -> TaskRecord | None:
        """The same, but its artifacts as they were at event `seq`: who comes back reads the rest of the log."""
        rows = await self.query(_UNTIL, {"id": task_id, "until": seq})
        return full_record(rows[0]) if rows else None

    async def load_many(
        self, ids: Sequence[str], *, history: bool = True, artifacts: bool = True
    ) -> dict[str, TaskRecord]:
        """Tasks by id, as of one moment; absent ones are left out."""
        rows = await self.query(f"{full_tasks(history, artifacts)} WHERE t.id = ANY(%s)", [list(ids)])
        return {row[0]: full_record(row) for row in rows}

    async def events_after(self, cursors: Sequence[tuple[str, int]], page: Page) -> dict[str, list[Event]]:
        """A page of events of several tasks each, beyond a seq each, in order."""
        ids, seqs = [c[0] for c in cursors], [c[1] for c in cursors]
        limits = {"ids": ids, "seqs": seqs, "events": page.events, "bytes": page.size}
        found: dict[str, list[Event]] = {}
        for row in await self.query(_EVENTS_AFTER, limits):
            found.setdefault(row[0], []).append(event(row))
        return found

    async def events_page(self, task_id: str, after: int, page: Page) -> list[Event]:
        """A page of one task's events beyond `after`, in order."""
        limits = {"task_id": task_id, "after": after, "events": page.events, "bytes": page.size}
        return [event(row) for row in await self.query(_EVENTS_PAGE, limits)]

    async def existing(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that are tasks."""
        return {row[0] for row in await self.query(_EXISTING, [list(ids)])}

    async def past(self, task_id: str) -> Past:
        """What its record does not tell of a task's past, for `tasks_app.tables.past.task_at`."""
        statuses = [event(row) for row in await self.query(_STATUSES, [task_id])]
        return Past(statuses, [row[0] for row in await self.query(_FOLLOW_UPS, [task_id])])

    async def receipt(self, agent_id: int, owner: str, message_id: str) -> tuple[str, str] | None:
        """(task id, digest) of a message that this caller sent before."""
        rows = await self.query(_RECEIPT, [agent_id, owner, message_id])
        return (rows[0][0], rows[0][1]) if rows else None

    async def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Rows of one statement that may run twice. A broken connection is replaced; without a database that takes it,
        for some seconds, it raises UnavailableError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        while True:
            try:
                return await self._rows(sql, parameters)
            except psycopg.Error as error:
                if not may_pass(error):
                    raise
                if loop.time() > deadline:
                    raise UnavailableError(retry_after=5) from error
                await asyncio.sleep(RETRY_SECONDS)

    async def _rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        async with self.connection() as connection:
            return await (await connection.execute(sql, parameters)).fetchall()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[psycopg.AsyncConnection]:
        """A connection of the pool, in autocommit mode. One that may not write is not used again: another one may lead
        to a server that takes writes. Raises psycopg.Error."""
        async with self.pool.connection(timeout=PATIENCE_SECONDS) as connection:
            try:
                yield connection
            except ReadOnlySqlTransaction:
                await connection.close()
                raise
