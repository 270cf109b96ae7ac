"""Reads one SSE stream event by event, and notes when each arrived."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from benchmarks.replies import WrongReply, events_of
from benchmarks.wire import Endpoint, ResponseReader, WireError

PATIENCE = 60.0  # seconds that anything here may take

_ID = re.compile(rb"^id: ?(\d+)\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One event: when it was here, in seconds since the epoch, its SSE id, which is its seq, and its text."""

    at: float
    seq: int
    text: bytes


class EventReader(asyncio.Protocol):
    """One stream. `events` are those that have arrived; what is wrong with it is raised by `until`."""

    def __init__(self, request: bytes) -> None:
        self.events: list[Arrival] = []
        self.asked_at = 0.0
        self._request = request
        self._reader = ResponseReader()
        self._rest = b""
        self._changed = asyncio.Event()
        self._broken: Exception | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def ended(self) -> bool:
        """Whether the server has ended it."""
        return self._reader.done

    async def until(self, condition: Callable[[], object]) -> None:
        """Return when it holds. Raises WrongReply, WireError or TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while self._broken is None and not condition():
                self._changed.clear()
                await self._changed.wait()
        if self._broken is not None:
            raise self._broken

    def close(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class is not registered as one
        self.asked_at = time.time()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        try:
            *whole, self._rest = (self._rest + self._reader.feed(data)).split(b"\n\n")
            if self._reader.status not in (0, 200):
                raise WrongReply(f"status {self._reader.status}: {self._rest[:300]!r}")
            for text in whole:
                if found := _ID.search(text):
                    self.events.append(Arrival(now, int(found[1]), text))
        except (WireError, WrongReply, ValueError) as wrong:
            self._broken = wrong
            self.close()
        self._changed.set()

    def connection_lost(self, broken: Exception | None) -> None:
        if not self._reader.done:
            self._broken = self._broken or WireError("connection closed before the end of the stream")
        self._changed.set()


async def open_stream(endpoint: Endpoint, request: bytes) -> EventReader:
    """A stream that answers a request."""
    loop = asyncio.get_running_loop()
    _, reader = await loop.create_connection(lambda: EventReader(request), endpoint.host, endpoint.port)
    return reader


def task_of(first: Arrival) -> str:
    """The id of the task that the first event of a JSON-RPC stream shows. Raises WrongReply."""
    (data,) = events_of(first.text + b"\n\n")
    shown = json.loads(data)
    try:
        return str(shown["result"]["task"]["id"])
    except KeyError:
        raise WrongReply(f"the first event is not the task: {data[:300]!r}") from None
