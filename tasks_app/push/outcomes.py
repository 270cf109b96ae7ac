"""Storing what came of requests. Whatever came while a statement was under way goes into the next one, so many webhooks
at once cost few round trips, and a single one does not wait for company.
"""

from __future__ import annotations

import asyncio

from tasks_app.push.queue import Next, Outcome, PushQueue

_AT_ONCE = 256


class Outcomes:
    """The writer of one process."""

    def __init__(self, queue: PushQueue) -> None:
        self._queue = queue
        self._waiting: list[tuple[Outcome, asyncio.Future[Next | None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def store(self, outcome: Outcome) -> Next | None:
        """Returns what is next for the config when it is stored, None if the claim is lost. Raises UnavailableError."""
        done: asyncio.Future[Next | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((outcome, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="outcomes of webhooks")
        return await done

    async def stop(self) -> None:
        """Wait until everything is stored."""
        if self._writer is not None:
            await self._writer

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
            try:
                found = await self._queue.store([outcome for outcome, _ in batch])
            except Exception as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for (_, done), following in zip(batch, found, strict=True):
                if not done.done():
                    done.set_result(following)
