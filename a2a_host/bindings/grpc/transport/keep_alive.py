"""Whether somebody is there at the other end of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

ANSWER_SECONDS = 20.0
"""How long a peer may take to answer a ping, and to read what it was sent last."""


class KeepAlive:
    """Has a peer asked by `ask` every so many seconds, and cuts its connection if nothing comes of it."""

    def __init__(self, transport: asyncio.Transport, seconds: float, ask: Callable[[], None]) -> None:
        self.heard = False
        """Whether anything came since the peer was asked."""
        self._transport = transport
        self._seconds = seconds
        self._ask = ask
        self._loop = asyncio.get_running_loop()
        self._unread = 0  # bytes that the peer had not taken when it was asked
        self._timer = self._loop.call_later(seconds, self._begin)

    def answered(self) -> None:
        """The answer is here."""
        self._set_timer(self._seconds, self._begin)

    def cut_later(self) -> None:
        """The connection is closed: the peer has some time to read what is left."""
        self._set_timer(ANSWER_SECONDS, self._transport.abort)

    def stop(self) -> None:
        """The connection has ended."""
        self._timer.cancel()

    def _begin(self) -> None:
        self.heard, self._unread = False, self._transport.get_write_buffer_size()
        self._ask()
        self._set_timer(ANSWER_SECONDS, self._judge)

    def _judge(self) -> None:
        """No answer came. A slow line may hold it back, but something moves on it."""
        if self.heard or self._transport.get_write_buffer_size() < self._unread:
            self._begin()
        else:
            self._transport.abort()

    def _set_timer(self, seconds: float, do: Callable[[], None]) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(seconds, do)
