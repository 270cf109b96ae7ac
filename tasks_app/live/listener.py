"""The one LISTEN connection of a process, and who is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import psycopg

from tasks_app.tables.link import Link

logger = logging.getLogger(__name__)

Handler = Callable[[str], None]
_RETRY_SECONDS = 0.5


class Listener:
    """Calls a channel's handler with each payload. After every (re)connection `caught_up` is awaited, since
    notifications may have been missed before it.
    """

    def __init__(self, dsn: str, caught_up: Callable[[], Awaitable[None]]) -> None:
        self._dsn = dsn
        self._caught_up = caught_up
        self._handlers: dict[str, Handler] = {}
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    def on(self, channel: str, handler: Handler) -> None:
        """Register the handler of a channel, before `start`."""
        self._handlers[channel] = handler

    async def start(self) -> asyncio.Task[None]:
        """Return when notifications are being received; gives the task that does."""
        self._task = asyncio.create_task(self._listen_forever(), name="listener")
        await self._listening.wait()
        return self._task

    async def stop(self) -> None:
        """Close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen_forever(self) -> None:
        while True:
            try:
                await self._listen()
            except psycopg.OperationalError as error:
                logger.warning("The listener lost its connection: %s", type(error).__name__)
            except Exception:  # Catching up goes through more than this connection. Nothing may end the listening.
                logger.exception("The listener failed and starts again")
            await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        link = await Link.open(self._dsn, {}, self._notified, listen=tuple(self._handlers))
        try:
            await self._caught_up()
            self._listening.set()
            await asyncio.shield(link.broken)
            raise psycopg.OperationalError("the connection is lost")
        finally:
            await link.close()

    def _notified(self, channel: str, payload: str) -> None:
        try:
            self._handlers[channel](payload)
        except Exception:
            logger.exception("A notification on %s was not understood", channel)
