"""The load: a number of callers, each sending its next call as soon as the last one is answered, for a time.

Every reply is checked. A wrong one, a broken connection and a server that never answers are errors, and an error
makes the row fail.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import uvloop

from benchmarks.calls import Call
from benchmarks.replies import WrongReply
from benchmarks.wire import Endpoint, ResponseReader, WireError

GRACE = 15.0  # seconds after the end of the time in which calls under way must be answered
MAX_ERRORS = 50  # a broken server is not hammered for the rest of the time


@dataclass(slots=True)
class Measure:
    """What one load came to. Times are in seconds; `cores` says how many cores each process kept busy."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    first_events: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    cores: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Right replies per second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    @property
    def p50(self) -> float:
        """Median time to the end of a reply."""
        return statistics.median(self.latencies) if self.latencies else float("nan")

    @property
    def first_event_p50(self) -> float:
        """Median time to the first event of a stream."""
        return statistics.median(self.first_events) if self.first_events else float("nan")


class Load:
    """Callers against one server. `make` builds the next call."""

    def __init__(
        self, endpoint: Endpoint, make: Callable[[], Call], seconds: float, calls: int = 0, grace: float = GRACE
    ) -> None:
        self.endpoint = endpoint
        self.make = make
        self.measure = Measure()
        self._seconds = seconds
        self._calls = calls
        self._grace = grace
        self._until = 0.0
        self._started = 0

    def over(self) -> bool:
        """Whether no further call is to be sent: time or number of calls used up, or too many errors."""
        if self._calls and self._started >= self._calls:
            return True
        return time.perf_counter() >= self._until or len(self.measure.errors) >= MAX_ERRORS

    def end(self) -> None:
        """Send no further call."""
        self._until = 0.0

    def next_call(self) -> Call:
        """Build the next call and count it."""
        self._started += 1
        return self.make()

    async def run(self, callers: int) -> Measure:
        """Run to the end; bounded by the time plus the grace."""
        began = time.perf_counter()
        self._until = began + self._seconds
        running = [asyncio.ensure_future(self._call_on()) for _ in range(callers)]
        _, hung = await asyncio.wait(running, timeout=self._seconds + self._grace)
        self.measure.seconds = time.perf_counter() - began
        for caller in hung:
            caller.cancel()
            self.measure.errors.append(f"no answer for {self._grace:g} s")
        await asyncio.gather(*running, return_exceptions=True)
        return self.measure

    async def _call_on(self) -> None:
        """One caller: a connection, and a new one whenever that one ends."""
        loop = asyncio.get_running_loop()
        while not self.over():
            try:
                _, caller = await loop.create_connection(lambda: Caller(self), self.endpoint.host, self.endpoint.port)
            except OSError as refused:
                self.measure.errors.append(f"no connection: {refused}")
                return
            try:
                await caller.closed
            finally:
                caller.drop()


class Caller(asyncio.Protocol):
    """One keep-alive connection. The next call is written in the very callback that completed the last one."""

    def __init__(self, load: Load) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._load = load
        self._transport: asyncio.Transport | None = None
        self._call: Call | None = None
        self._reader = ResponseReader()
        self._body = b""
        self._sent_at = 0.0
        self._first_event_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class is not registered as one
        self._next()

    def data_received(self, data: bytes) -> None:
        try:
            piece = self._reader.feed(data)
            if piece:
                if not self._first_event_at and b"data:" in piece:
                    self._first_event_at = time.perf_counter()
                self._body = self._body + piece if self._body else piece
            if self._reader.done:
                self._answered()
        except (WireError, WrongReply, ValueError) as wrong:
            self._fail(wrong)

    def connection_lost(self, broken: Exception | None) -> None:
        if self._call is not None:
            try:
                self._reader.end()
                self._answered()
            except (WireError, WrongReply) as wrong:
                self._fail(wrong)
        if not self.closed.done():
            self.closed.set_result(None)

    def drop(self) -> None:
        """End the connection; a call under way is not counted."""
        self._call = None
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        assert self._transport is not None
        if self._load.over():
            self._transport.close()
            return
        self._call = self._load.next_call()
        self._reader = ResponseReader()
        self._body = b""
        self._first_event_at = 0.0
        self._sent_at = time.perf_counter()
        self._transport.write(self._call.raw)

    def _answered(self) -> None:
        """The response is whole: check and count it, then go on."""
        now = time.perf_counter()
        call, self._call = self._call, None
        assert call is not None
        assert self._transport is not None
        if self._reader.status != 200:
            raise WrongReply(f"status {self._reader.status}: {self._body[:300]!r}")
        call.check(self._body)
        measure = self._load.measure
        measure.latencies.append(now - self._sent_at)
        if self._first_event_at:
            measure.first_events.append(self._first_event_at - self._sent_at)
        if self._reader.keep:
            self._next()
        else:
            self._transport.close()

    def _fail(self, wrong: Exception) -> None:
        self._load.measure.errors.append(str(wrong))
        self.drop()


def measure(endpoint: Endpoint, make: Callable[[], Call], callers: int, seconds: float, calls: int = 0) -> Measure:
    """Put `callers` callers on `endpoint` for `seconds` (or `calls` calls, if given, whichever comes first)."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Load(endpoint, make, seconds, calls).run(callers))
