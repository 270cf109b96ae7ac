"""Reading single tasks: all that are asked for while one read is under way are read together by the next one."""

from __future__ import annotations

import asyncio

import psycopg

from protocol.errors import UnavailableError
from tasks_app.tables.arrays import array, text
from tasks_app.tables.link import Link
from tasks_app.tables.passing import may_pass
from tasks_app.tables.record import TaskRecord
from tasks_app.tables.rows import full_record, full_tasks
from tasks_app.tables.together import Together

PATIENCE_SECONDS = 5.0
"""How long a read waits for a database that is away."""
RETRY_SECONDS = 0.1

_LOAD = "a2a_load"
_STATEMENTS = {_LOAD: f"{full_tasks()} WHERE t.id = ANY($1::text[])"}


class Loader:
    """One connection of its own, opened when it is first needed and again when it breaks."""

    def __init__(self, dsn: str, poll_seconds: float) -> None:
        self._dsn = dsn
        self._poll_seconds = poll_seconds
        self._link: Link | None = None
        self._reads = Together(self._read)

    async def stop(self) -> None:
        """Finish what is asked for, then close."""
        await self._reads.stop()
        await self._drop_link()

    async def load(self, task_id: str) -> TaskRecord | None:
        """The task with history and artifacts; None if there is none. Raises UnavailableError."""
        return await self._reads.get(task_id)

    async def _read(self, ids: list[str]) -> dict[str, TaskRecord]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        while True:
            try:
                if self._link is None:
                    self._link = await Link.open(self._dsn, _STATEMENTS, poll_seconds=self._poll_seconds)
                return {row[0]: full_record(row) for row in await self._link.fetch(_LOAD, [array(map(text, ids))])}
            except psycopg.Error as error:
                await self._drop_link()
                if not may_pass(error):
                    raise
                if loop.time() > deadline:
                    raise UnavailableError(retry_after=5) from error
                await asyncio.sleep(RETRY_SECONDS)

    async def _drop_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()
