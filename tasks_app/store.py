"""Reading tasks off the hot path of the ORM: everything that is asked for at one moment is read in one statement."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from protocol.errors import UnavailableError
from tasks_app.loader import PATIENCE_SECONDS, RETRY_SECONDS, Loader
from tasks_app.record import Event, EventKind, TaskRecord
from tasks_app.rows import EVENT_COLUMNS, event, full_record, full_tasks

_EVENTS_AFTER = f"""SELECT {EVENT_COLUMNS} FROM unnest(%s::text[], %s::int[]) AS c(id, cursor)
    JOIN tasks_app_event e ON e.task_id = c.id AND e.seq > c.cursor ORDER BY task_id, seq"""
_EVENTS_PAGE = f"""SELECT {EVENT_COLUMNS} FROM tasks_app_event
    WHERE task_id = %s AND seq > %s ORDER BY seq LIMIT %s"""
_STATUSES = f"""SELECT {EVENT_COLUMNS} FROM tasks_app_event
    WHERE task_id = %s AND kind = {EventKind.STATUS.value} ORDER BY seq"""
_RECEIPT = """SELECT task_id, digest FROM tasks_app_receipt WHERE agent_id = %s AND owner = %s AND message_id = %s"""


class Store:
    """Reads for one process and event loop, over a small pool."""

    def __init__(self, dsn: str) -> None:
        self.pool = AsyncConnectionPool(
            dsn, min_size=1, max_size=6, open=False, kwargs={"autocommit": True, "prepare_threshold": 0}
        )
        self._loader = Loader(dsn)

    async def start(self) -> None:
        """Open the pool. Raises `psycopg_pool.PoolTimeout` when the database cannot be reached."""
        await self.pool.open(wait=True, timeout=10)

    async def stop(self) -> None:
        """Close the pool."""
        await self._loader.stop()
        await self.pool.close()

    async def load(self, task_id: str) -> TaskRecord | None:
        """The task with its history and artifacts, as committed now. Callers must not change it: it may be shared."""
        return await self._loader.load(task_id)

    async def load_many(
        self, ids: Sequence[str], *, history: bool = True, artifacts: bool = True
    ) -> dict[str, TaskRecord]:
        """Tasks by id, as of one moment; absent ones are left out."""
        rows = await self.query(f"{full_tasks(history, artifacts)} WHERE t.id = ANY(%s)", [list(ids)])
        return {row[0]: full_record(row) for row in rows}

    async def events_after(self, cursors: Sequence[tuple[str, int]]) -> dict[str, list[Event]]:
        """Events of several tasks beyond a seq each, in order."""
        ids, seqs = [c[0] for c in cursors], [c[1] for c in cursors]
        rows = await self.query(_EVENTS_AFTER, [ids, seqs])
        found: dict[str, list[Event]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(event(row))
        return found

    async def events_page(self, task_id: str, after: int, limit: int) -> list[Event]:
        """At most `limit` events of one task beyond `after`, in order."""
        return [event(row) for row in await self.query(_EVENTS_PAGE, [task_id, after, limit])]

    async def statuses(self, task_id: str) -> list[Event]:
        """All status events of a task, in order."""
        return [event(row) for row in await self.query(_STATUSES, [task_id])]

    async def receipt(self, agent_id: int, owner: str, message_id: str) -> tuple[str, str] | None:
        """(task id, digest) of a message that this caller sent before."""
        rows = await self.query(_RECEIPT, [agent_id, owner, message_id])
        return (rows[0][0], rows[0][1]) if rows else None

    async def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Rows of one statement that may run twice. A broken connection is replaced; without a database for some
        seconds it raises UnavailableError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        while True:
            try:
                async with self.pool.connection(timeout=PATIENCE_SECONDS) as connection:
                    return await (await connection.execute(sql, parameters)).fetchall()
            except psycopg.OperationalError as error:
                if loop.time() > deadline:
                    raise UnavailableError(retry_after=5) from error
                await asyncio.sleep(RETRY_SECONDS)
