"""Who wants to hear of events: a process without streams or open pages is not told, and costs writers nothing.

A NOTIFY wakes every process that listens, whatever it listens to. So the journal's statement sends one only while
another process has said, in the table `tasks_app_listening`, that somebody follows something there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from protocol.errors import UnavailableError
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

_TOLD_SECONDS = 90.0
_RENEW_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = (0.0, 0.25, 1.0)
"""A statement that began before the wish was stored does not know of it: what it wrote is looked for afterwards."""

_TELL = """WITH old AS (DELETE FROM tasks_app_listening WHERE until < now() - interval '1 hour')
    INSERT INTO tasks_app_listening (origin, until) VALUES (%s, now() + make_interval(secs => %s))
    ON CONFLICT (origin) DO UPDATE SET until = excluded.until RETURNING origin"""


class Interest:
    """The wish of one process. `look` is called when something may have been missed before others knew of it."""

    def __init__(self, store: Store, origin: str, look: Callable[[], None]) -> None:
        self._store = store
        self._origin = origin
        self._look = look
        self._renew_at = 0.0
        self._lapses_at = 0.0
        self.telling: asyncio.Task[None] | None = None

    def want(self) -> None:
        """Hear of events from now on, for a while: to be called again while somebody follows."""
        now = asyncio.get_running_loop().time()
        if now >= self._renew_at and (self.telling is None or self.telling.done()):
            self.telling = asyncio.create_task(self._tell(now >= self._lapses_at), name="interest in events")

    def forget(self) -> None:
        """What was stored may be lost: say it again on the next wish."""
        self._renew_at = self._lapses_at = 0.0

    async def _tell(self, fresh: bool) -> None:
        now = asyncio.get_running_loop().time()
        try:
            await self._store.query(_TELL, [self._origin, _TOLD_SECONDS])
        except UnavailableError as error:
            logger.warning("Other processes do not know of the streams here yet: %s", type(error).__name__)
            return
        self._renew_at, self._lapses_at = now + _RENEW_SECONDS, now + _TOLD_SECONDS
        if fresh:
            for seconds in _LOOK_AGAIN_SECONDS:
                await asyncio.sleep(seconds)
                self._look()
