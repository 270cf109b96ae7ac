"""Figures of the host alone: their bounds, and that what they are made of is complete and right."""

from __future__ import annotations

import asyncio
import json
import math
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.alone import Alone, Bound, Outcome, Place, milliseconds
from benchmarks.claims import not_measured
from benchmarks.events import open_stream, task_of
from benchmarks.pushing import _check_chunks
from benchmarks.receiver import Notification, Receiver
from benchmarks.replies import WrongReply
from benchmarks.wire import ResponseReader, WireError
from tests.benchmarks.stub import STREAM_HEAD, chunk, echo_task, listening, read_request

NOWHERE: Any = None


@pytest.mark.parametrize(
    ("bound", "wanted", "figure", "base", "passed"),
    [
        (Bound("t", "ms", at_most=5), "≤ 5 ms", 5.0, math.nan, True),
        (Bound("t", "ms", at_most=5), "≤ 5 ms", 5.1, math.nan, False),
        (Bound("t", "ms", at_most=5), "≤ 5 ms", math.nan, math.nan, False),
        (Bound("t", "x/s", at_least=100), "≥ 100 x/s", 100.0, math.nan, True),
        (Bound("t", "x/s", at_least=100), "≥ 100 x/s", 99.0, math.nan, False),
        (Bound("t", "ms", times_at_most=2), "≤ 2x", 20.0, 10.0, True),
        (Bound("t", "ms", times_at_most=2), "≤ 2x", 20.1, 10.0, False),
        (Bound("t", "ms", times_at_most=2), "≤ 2x", 20.0, math.nan, False),
        (Bound("t", "ms"), "", 20.0, math.nan, True),
        (Bound("t", "ms"), "", math.nan, math.nan, False),
    ],
)
def test_a_figure_keeps_its_bound(bound: Bound, wanted: str, figure: float, base: float, passed: bool) -> None:
    outcome = bound.judge(figure, base)
    assert (outcome.wanted, outcome.passed, outcome.unit) == (wanted, passed, bound.unit)
    assert not bound.judge(figure, base, ["wrong"]).passed


def test_a_percentile_is_a_figure_that_was_measured() -> None:
    assert milliseconds([0.004, 0.001, 0.002, 0.003], 0.5) == 2.5
    assert milliseconds([n / 1000 for n in range(1, 201)], 0.99) == 198
    assert milliseconds([0.003, 0.001], 1) == 3
    assert math.isnan(milliseconds([], 0.5))


def test_what_cannot_be_measured_misses() -> None:
    async def fail(place: Place) -> list[Outcome]:
        raise WrongReply("another reply")

    bounds = Bound("one", "ms", at_most=5), Bound("two", "ms")
    outcomes = Alone("group", bounds, fail).run(NOWHERE)
    assert [repr(outcome) for outcome in outcomes] == [  # not a number equals nothing
        repr(not_measured("one", "≤ 5 ms", "WrongReply: another reply")),
        repr(not_measured("two", "", "WrongReply: another reply")),
    ]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


async def test_the_receiver_takes_requests_whole_and_by_path(listener: socket.socket) -> None:
    body = b'{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}'
    artifact = b'{"artifactUpdate":{"artifact":{"parts":[]}}}'
    async with Receiver(listener) as receiver:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        for path, content in (("/a", body), ("/b", artifact), ("/a", artifact)):
            raw = b"POST %b HTTP/1.1\r\nHost: x\r\ncontent-LENGTH: %d\r\n\r\n" % (path.encode(), len(content)) + content
            writer.write(raw[:-7])
            await asyncio.sleep(0)
            writer.write(raw[-7:])
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.close()
        await receiver.until(lambda: len(receiver.notifications["/a"]) == 2)
        assert receiver.url("/a") == f"http://127.0.0.1:{listener.getsockname()[1]}/a"
    assert [one.state for one in receiver.notifications["/a"]] == ["TASK_STATE_COMPLETED", None]
    assert [one.body for one in receiver.notifications["/b"]] == [artifact]
    assert receiver.notifications["/a"][0].at <= receiver.notifications["/a"][1].at


@pytest.mark.parametrize("numbers", [[1, 3], [2, 1], [1, 2, 2], [1]])
def test_chunks_that_are_not_all_there_in_order_are_wrong(numbers: list[int]) -> None:
    def notified(number: int) -> Notification:
        parts = [{"text": f"chunk {number}\n"}]
        return Notification(0.0, json.dumps({"artifactUpdate": {"artifact": {"parts": parts}}}).encode())

    _check_chunks([notified(1), notified(2)], 2)
    with pytest.raises(WrongReply):
        _check_chunks([notified(number) for number in numbers], 2)


def sse(seq: int, result: dict[str, Any]) -> bytes:
    """One event as the host writes it."""
    return f"id: {seq}\ndata: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': result})}\n\n".encode()


async def test_events_of_a_stream_have_their_numbers_and_moments() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        events = [sse(3, {"task": echo_task("x", task_id="t9")}), b": keep-alive\n\n", sse(4, {"statusUpdate": {}})]
        body = STREAM_HEAD + b"".join(map(chunk, events)) + chunk(b"")
        for at in range(0, len(body), 50):
            writer.write(body[at : at + 50])
            await writer.drain()
        writer.close()

    async with listening(handle) as endpoint:
        stream = await open_stream(endpoint, endpoint.request("POST", body=b"{}"))
        await stream.until(lambda: stream.ended)
    assert [event.seq for event in stream.events] == [3, 4]
    assert stream.asked_at <= stream.events[0].at <= stream.events[1].at
    assert task_of(stream.events[0]) == "t9"
    with pytest.raises(WrongReply, match="the first event is not the task"):
        task_of(stream.events[1])


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        (b"HTTP/1.1 404 x\r\nContent-Length: 2\r\n\r\nno", WrongReply),
        (STREAM_HEAD + chunk(sse(1, {"task": echo_task("x")})), WireError),
    ],
)
async def test_a_stream_that_breaks_is_no_measurement(reply: bytes, wrong: type[Exception]) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(reply)
        writer.close()

    async with listening(handle) as endpoint:
        stream = await open_stream(endpoint, endpoint.request("POST", body=b"{}"))
        with pytest.raises(wrong):
            await stream.until(lambda: stream.ended)


def test_thousands_of_chunks_at_once_are_read() -> None:
    reader = ResponseReader()
    pieces = [b"%d;" % number for number in range(5000)]
    raw = STREAM_HEAD + b"".join(map(chunk, pieces)) + chunk(b"")
    middle = len(raw) // 2 + 1
    assert reader.feed(raw[:middle]) + reader.feed(raw[middle:]) == b"".join(pieces)
    assert reader.done
