"""Idle streams count only if each of them is told how its task ended."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from benchmarks.calls import JsonRpc
from benchmarks.client import measure
from benchmarks.subscribers import BATCH, WARM, idle_streams
from benchmarks.wire import Endpoint
from tests.benchmarks.stub import (
    AT,
    STREAM_HEAD,
    chunk,
    echo_task,
    event,
    json_response,
    listening,
    read_request,
    serve,
    text_of,
)

COUNT = 30
OPENED = COUNT + WARM + 1  # and the stream of the send that holds the task


class HoldServer:
    """Streams that show a task, wait, and end when the task is cancelled. `flaw` says what one of them does wrong."""

    def __init__(self, flaw: str = "") -> None:
        self.flaw = flaw
        self.streams = 0
        self.cancelled = asyncio.Event()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, body = await read_request(reader)
        if body["method"] == "CancelTask":
            self.cancelled.set()
            state = "TASK_STATE_WORKING" if self.flaw == "not cancelled" else "TASK_STATE_CANCELED"
            writer.write(json_response({"jsonrpc": "2.0", "id": body["id"], "result": echo_task("x", state)}))
        else:
            self.streams += 1
            await self.stream(writer, body["id"], self.flaw if self.streams == OPENED else "")
        await writer.drain()

    async def stream(self, writer: asyncio.StreamWriter, number: int, flaw: str) -> None:
        def send(result: dict[str, Any]) -> None:
            writer.write(chunk(event({"jsonrpc": "2.0", "id": number, "result": result})))

        writer.write(STREAM_HEAD)
        send({"task": echo_task("x", "TASK_STATE_WORKING", "t2" if flaw == "another task" else "t1")})
        await self.cancelled.wait()
        if flaw == "breaks off":
            return
        state = "TASK_STATE_COMPLETED" if flaw == "another end" else "TASK_STATE_CANCELED"
        if flaw != "no last event":
            send({"statusUpdate": {"taskId": "t1", "status": {"state": state, "timestamp": AT}}})
        writer.write(chunk(b""))


def hold(flaw: str = "") -> contextlib.AbstractAsyncContextManager[Endpoint]:
    return listening(HoldServer(flaw).handle)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.subscribers.SETTLE", 0.0)
    monkeypatch.setattr("benchmarks.subscribers.PATIENCE", 5.0)


async def test_memory_is_that_of_the_counted_streams() -> None:
    readings = iter([1_000_000, 1_000_000 + COUNT * 8 * 1024])
    async with hold() as endpoint:
        idle = await asyncio.to_thread(idle_streams, endpoint, COUNT, lambda: next(readings))
    assert (idle.streams, idle.opened, idle.ended, idle.kib_each, idle.errors) == (COUNT, OPENED, OPENED, 8.0, [])
    assert COUNT % BATCH != 0


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("no last event", "a stream that ends without the last event"),
        ("another end", "a stream that ends without the last event"),
        ("breaks off", "connection closed before the end of the stream"),
    ],
)
async def test_a_stream_that_is_not_told_the_end_is_an_error(flaw: str, message: str) -> None:
    async with hold(flaw) as endpoint:
        idle = await asyncio.to_thread(idle_streams, endpoint, COUNT, lambda: 0)
    assert (idle.opened, idle.ended, idle.errors) == (OPENED, OPENED - 1, [message])


async def test_a_cancel_that_does_not_cancel_is_an_error() -> None:
    async with hold("not cancelled") as endpoint:
        idle = await asyncio.to_thread(idle_streams, endpoint, COUNT, lambda: 0)
    assert idle.errors == ["not cancelled: t1 TASK_STATE_WORKING"]


async def test_a_stream_of_another_task_is_an_error() -> None:
    async with hold("another task") as endpoint:
        idle = await asyncio.to_thread(idle_streams, endpoint, COUNT, lambda: 0)
    assert (idle.ended, idle.errors) == (0, ["WrongReply: the first event is not the task"])
    assert idle.kib_each != idle.kib_each


async def test_the_load_runs_on_its_own_loop_too() -> None:
    def answer(_: str, body: dict[str, Any]) -> list[bytes]:
        result = {"task": echo_task(text_of(body))}
        return [json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})]

    async with serve(answer) as endpoint:
        taken = await asyncio.to_thread(measure, endpoint, JsonRpc(endpoint).send, 2, 5.0, 10)
    assert (len(taken.latencies), taken.errors) == (10, [])
