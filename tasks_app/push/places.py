"""Who may send now. Webhooks that hang must never keep those waiting that do not.

A receiver is a host and port. Those that answered quickly have places of their own, so have those that nobody knows
yet; slow ones, and webhooks that did not take their last notification, share a few. A place of the first two kinds is
given back while the request still waits for its answer, so these come free whatever receivers do. All requests to one
receiver together have a limit, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum

HOLD_SECONDS = 0.25
"""After which a request has no place any more, unless it is one of the few."""
SLOW_SECONDS = 2.0
"""What a receiver may take and still count as quick."""
WAIT_SECONDS = 10.0
"""How long to wait for a place, well within the lease of a claim."""
PER_RECEIVER = 100
_REMEMBERED = 10_000  # receivers


class Standing(Enum):
    """What is known of a receiver, and how many places there are for all that stand so."""

    QUICK = 500
    UNKNOWN = 400
    SLOW = 100


class NoPlaceError(Exception):
    """There was no place within WAIT_SECONDS."""


@dataclass(slots=True)
class Receiver:
    """One host and port, with the requests that may still be sent to it. `users` are at it or wait for it."""

    standing: Standing = Standing.UNKNOWN
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PER_RECEIVER))
    users: int = 0


class Places:
    """The places of one process and event loop."""

    def __init__(self) -> None:
        self._free = {standing: asyncio.Semaphore(standing.value) for standing in Standing}
        self._receivers: dict[str, Receiver] = {}

    @asynccontextmanager
    async def place(self, url: str, failing: bool) -> AsyncIterator[None]:
        """Hold a place for one request to `url`; `failing` says that the webhook did not take the last one.

        Raises NoPlaceError.
        """
        receiver = self._receiver(url)
        receiver.users += 1
        try:
            async with AsyncExitStack() as stack:
                standing = await self._wait(receiver, failing, stack)
                loop = asyncio.get_running_loop()
                started = loop.time()
                stack.callback(loop.call_later(SLOW_SECONDS, _slow, receiver).cancel)
                give_back = _Once(self._free[standing])
                stack.callback(give_back)
                if standing is not Standing.SLOW:
                    stack.callback(loop.call_later(HOLD_SECONDS, give_back).cancel)
                yield
                if loop.time() - started < SLOW_SECONDS:
                    receiver.standing = Standing.QUICK
        finally:
            receiver.users -= 1

    async def _wait(self, receiver: Receiver, failing: bool, stack: AsyncExitStack) -> Standing:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await stack.enter_async_context(receiver.free)
                while True:
                    standing = Standing.SLOW if failing else receiver.standing
                    await self._free[standing].acquire()
                    if failing or receiver.standing is standing:
                        return standing
                    self._free[standing].release()  # While this one waited, others learned more of the receiver.
        except TimeoutError:
            raise NoPlaceError from None

    def _receiver(self, url: str) -> Receiver:
        name = url.split("/", 3)[2].lower()
        found = self._receivers.pop(name, None) or Receiver()
        self._receivers[name] = found  # the one that was used last is the last to be forgotten
        if len(self._receivers) > _REMEMBERED:
            oldest = next(iter(self._receivers))
            if not self._receivers[oldest].users:
                del self._receivers[oldest]
        return found


class _Once:
    """Gives a place back, however often it is called."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places: asyncio.Semaphore | None = places

    def __call__(self) -> None:
        if self._places is not None:
            self._places.release()
            self._places = None


def _slow(receiver: Receiver) -> None:
    receiver.standing = Standing.SLOW
