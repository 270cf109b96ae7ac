"""Memory of idle streams: many subscribers to one task that works on and on, until it is cancelled.

Each subscriber must be shown the task when it comes, and the CANCELED status as the last event when it goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import uvloop

from benchmarks.calls import JsonRpc
from benchmarks.client import Load
from benchmarks.replies import StreamResult, WrongReply, events_of
from benchmarks.wire import Endpoint, ResponseReader, WireError

HOLD_SECONDS = 600  # far beyond the measurement; the task is cancelled
WARM = 20  # streams opened before the first reading, so that what a process loads once is not counted
BATCH = 20  # streams opened at a time
SETTLE = 2.0  # seconds before a reading of the memory
PATIENCE = 30.0  # seconds that one step may take
CANCELED = "TASK_STATE_CANCELED"


@dataclass(slots=True)
class Idle:
    """What came out. `kib_each` is the memory of one of `streams`; with those opened before there were `opened`."""

    streams: int = 0
    opened: int = 0
    ended: int = 0  # of the opened ones, with the right last event
    kib_each: float = float("nan")
    errors: list[str] = field(default_factory=list)


class Subscriber(asyncio.Protocol):
    """One stream. `first` is its first event; `last` its last one, once the response has ended."""

    def __init__(self, rpc: JsonRpc, request: tuple[bytes, int]) -> None:
        loop = asyncio.get_running_loop()
        self.first: asyncio.Future[StreamResult] = loop.create_future()
        self.last: asyncio.Future[StreamResult] = loop.create_future()
        self._rpc = rpc
        self._raw, self._number = request
        self._reader = ResponseReader()
        self._body = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class is not registered as one
        self._transport.write(self._raw)

    def data_received(self, data: bytes) -> None:
        try:
            self._body += self._reader.feed(data)
            if not self.first.done() and b"\n\n" in self._body.replace(b"\r\n", b"\n"):
                self._show(self.first, 0)
            if self._reader.done:
                self._show(self.last, -1)
        except (WireError, WrongReply, ValueError) as wrong:
            self._fail(wrong)

    def connection_lost(self, broken: Exception | None) -> None:
        self._fail(WireError("connection closed before the end of the stream"))

    def close(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _show(self, waiting: asyncio.Future[StreamResult], position: int) -> None:
        """Resolve a future with an event of the whole events so far; a comment alone is not one."""
        if self._reader.status != 200:
            raise WrongReply(f"status {self._reader.status}: {self._body[:300]!r}")
        whole, separator, _ = self._body.replace(b"\r\n", b"\n").rpartition(b"\n\n")
        events = events_of(whole + separator)
        if events and not waiting.done():
            waiting.set_result(self._rpc.event(events[position], self._number))

    def _fail(self, wrong: Exception) -> None:
        for waiting in (self.first, self.last):
            if not waiting.done():
                waiting.set_exception(wrong)
                waiting.exception()  # looked at, so that asyncio does not complain when nobody waits


class IdleStreams:
    """The measurement on one server; `memory` reads the server's memory in bytes."""

    def __init__(self, endpoint: Endpoint, memory: Callable[[], int]) -> None:
        self._endpoint = endpoint
        self._rpc = JsonRpc(endpoint)
        self._memory = memory
        self._result = Idle()
        self._subscribers: list[Subscriber] = []

    async def run(self, count: int) -> Idle:
        """Open `count` streams, read the memory, end them."""
        self._result.streams = count
        try:
            holder = await self._open(self._rpc.begin(f"hold {HOLD_SECONDS}"))
            task_id = self._task_of(await asyncio.wait_for(holder.first, PATIENCE))
            await self._subscribe(task_id, WARM)
            self._result.kib_each = await self._read_memory(task_id, count)
            await self._cancel(task_id)
        except (OSError, TimeoutError, WireError, WrongReply) as wrong:
            self._result.errors.append(f"{type(wrong).__name__}: {wrong}")
        finally:
            for subscriber in self._subscribers:
                subscriber.close()
        return self._result

    async def _open(self, request: tuple[bytes, int]) -> Subscriber:
        loop = asyncio.get_running_loop()
        _, subscriber = await loop.create_connection(
            lambda: Subscriber(self._rpc, request), self._endpoint.host, self._endpoint.port
        )
        self._subscribers.append(subscriber)
        return subscriber

    def _task_of(self, event: StreamResult, task_id: str = "") -> str:
        """The id of the task that a first event must show."""
        if event.task is None or (task_id and event.task.id != task_id):
            raise WrongReply("the first event is not the task")
        return event.task.id

    async def _subscribe(self, task_id: str, count: int) -> None:
        for done in range(0, count, BATCH):
            opened = await asyncio.gather(
                *(self._open(self._rpc.subscribe(task_id)) for _ in range(min(BATCH, count - done)))
            )
            for first in await asyncio.wait_for(asyncio.gather(*(s.first for s in opened)), PATIENCE):
                self._task_of(first, task_id)

    async def _read_memory(self, task_id: str, count: int) -> float:
        """KiB that each of `count` more streams takes."""
        await asyncio.sleep(SETTLE)
        before = self._memory()
        await self._subscribe(task_id, count)
        await asyncio.sleep(SETTLE)
        return (self._memory() - before) / count / 1024

    async def _cancel(self, task_id: str) -> None:
        """Cancel the task, and see that every stream is told and ends."""
        load = Load(self._endpoint, lambda: self._rpc.cancel(task_id), seconds=PATIENCE, calls=1)
        self._result.errors += (await load.run(1)).errors
        await asyncio.wait([s.last for s in self._subscribers], timeout=PATIENCE)
        faults = [self._faults(subscriber) for subscriber in self._subscribers]
        self._result.errors += [fault for fault in faults if fault]
        self._result.opened, self._result.ended = len(faults), faults.count("")

    def _faults(self, subscriber: Subscriber) -> str:
        """What is wrong with the end of a stream, or ""."""
        if not subscriber.last.done():
            return "a stream that did not end"
        if wrong := subscriber.last.exception():
            return str(wrong)
        update = subscriber.last.result().status_update
        if update is None or update.status.state != CANCELED:
            return "a stream that ends without the last event"
        return ""


def idle_streams(endpoint: Endpoint, count: int, memory: Callable[[], int]) -> Idle:
    """Measure `count` idle SubscribeToTask streams of an agent that understands `hold SECONDS`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(IdleStreams(endpoint, memory).run(count))
