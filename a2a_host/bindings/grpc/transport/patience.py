"""How much a peer may send that brings no call forward: resets, pings, settings and the like, each cheap to send."""

from __future__ import annotations

import time
from collections.abc import Callable

_MOST = 1000
_PER_SECOND = 100
_FOR_PROGRESS = 10
"""Clients that measure the line ping for nearly every message that they get, and open windows as they read."""


class FloodError(Exception):
    """The peer sent more of this than any client does."""


class Patience:
    """What is left of it for one connection. It comes back with time and with what is sent to the peer."""

    __slots__ = ("_clock", "_left", "_since")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = _MOST
        self._since = clock()

    def spend(self) -> None:
        """For a frame that brings nothing forward. Raises FloodError."""
        self._left -= 1
        if self._left < 0:
            now = self._clock()
            self._left = min(_MOST, int((now - self._since) * _PER_SECOND)) - 1
            self._since = now
            if self._left < 0:
                raise FloodError

    def restore(self) -> None:
        """For what was sent."""
        self._left = min(_MOST, self._left + _FOR_PROGRESS)
