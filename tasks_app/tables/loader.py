"""Reading single tasks: all that are asked for while one read is under way are read together by the next one."""

from __future__ import annotations

import asyncio

import psycopg

from protocol.errors import A2AError, InternalError, UnavailableError
from tasks_app.tables.arrays import array, text
from tasks_app.tables.link import Link
from tasks_app.tables.passing import may_pass
from tasks_app.tables.record import TaskRecord
from tasks_app.tables.rows import full_record, full_tasks

PATIENCE_SECONDS = 5.0
"""How long a read waits for a database that is away."""
RETRY_SECONDS = 0.1

_LOAD = "a2a_load"
_STATEMENTS = {_LOAD: f"{full_tasks()} WHERE t.id = ANY($1::text[])"}
_BATCH = 128


class Loader:
    """One connection of its own, opened when it is first needed and again when it breaks."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._link: Link | None = None
        self._wanted: dict[str, list[asyncio.Future[TaskRecord | None]]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._reading = False

    async def stop(self) -> None:
        """Finish what is asked for, then close."""
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._drop_link()

    async def load(self, task_id: str) -> TaskRecord | None:
        """The task with history and artifacts; None if there is none. Raises UnavailableError."""
        waiter: asyncio.Future[TaskRecord | None] = asyncio.get_running_loop().create_future()
        self._wanted.setdefault(task_id, []).append(waiter)
        if not self._reading:
            self._reading = True
            self._reader = asyncio.create_task(self._read_wanted(), name="loader")
        return await waiter

    async def _read_wanted(self) -> None:
        try:
            while self._wanted:
                batch = {task_id: self._wanted.pop(task_id) for task_id in list(self._wanted)[:_BATCH]}
                await self._read_batch(batch)
        finally:
            self._reading = False

    async def _read_batch(self, batch: dict[str, list[asyncio.Future[TaskRecord | None]]]) -> None:
        records: dict[str, TaskRecord] = {}
        failure: A2AError | None = None
        try:
            records = await self._read(list(batch))
        except Exception as error:
            failure = UnavailableError(retry_after=5) if may_pass(error) else InternalError()
            failure.__cause__ = error
        for task_id, waiters in batch.items():
            for waiter in waiters:
                if waiter.done():
                    continue
                if failure is None:
                    waiter.set_result(records.get(task_id))
                else:
                    waiter.set_exception(failure)

    async def _read(self, ids: list[str]) -> dict[str, TaskRecord]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        while True:
            try:
                if self._link is None:
                    self._link = await Link.open(self._dsn, _STATEMENTS)
                return {row[0]: full_record(row) for row in await self._link.fetch(_LOAD, [array(map(text, ids))])}
            except psycopg.Error as error:
                await self._drop_link()
                if not may_pass(error) or loop.time() > deadline:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    async def _drop_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()
