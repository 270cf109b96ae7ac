"""What peers may cost: floods, half requests, peers that do not read or are not there."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest
import uvloop
from h2.errors import ErrorCodes
from h2.events import PingReceived
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from a2a_host.bindings.grpc.transport import call as call_module
from a2a_host.bindings.grpc.transport import keep_alive as keep_alive_module
from a2a_host.bindings.grpc.transport.messages import Inbox, UploadRoom
from a2a_host.bindings.grpc.transport.patience import FloodError, Patience
from tests.grpc.transport.conftest import Site, serving
from tests.grpc.transport.raw import Raw
from tests.tasks_app.world import until

HALF = b"\0\0\x10\0\0"
"""The prefix of a message of 1 MiB."""


def test_patience_ends_and_comes_back() -> None:
    now = 0.0
    patience = Patience(lambda: now)

    def spend(times: int) -> None:
        for _ in range(times):
            patience.spend()
        with pytest.raises(FloodError):
            patience.spend()

    spend(1000)
    now = 1.0
    spend(100)
    now = 1.5
    patience.restore()
    spend(10 + 50 - 1)  # The one too much of last time counts.
    now = 1000.0
    spend(1000)


@pytest.mark.parametrize(
    "frame",
    [
        lambda number: PingFrame(0, b"12345678"),
        lambda number: PingFrame(0, b"12345678", flags=["ACK"]),
        lambda number: SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: number}),
        lambda number: PriorityFrame(2 * number + 1, depends_on=0),
        lambda number: WindowUpdateFrame(0, 1),
        lambda number: b"\0\0\1\xaa\0\0\0\0\0?",  # of a kind that nobody knows
        lambda number: DataFrame(1, b""),
    ],
)
async def test_a_flood_ends_the_connection(site: Site, frame: Callable[[int], Frame | bytes]) -> None:
    async with site.connect() as raw, site.connect() as other:
        assert raw.request(path="/test/Chat") == 1
        raw.write(*(frame(number) for number in range(900)))
        assert await raw.echo() == b"still there"
        raw.write(*(frame(number) for number in range(5000)))
        assert await raw.ended() == ErrorCodes.ENHANCE_YOUR_CALM
        assert await other.echo() == b"still there"
    await until(lambda: site.ended == ["chat"], "the end of its call")


@pytest.mark.parametrize("malformed", [False, True])
async def test_calls_that_are_reset_at_once(raw: Raw, site: Site, malformed: bool) -> None:
    """CVE-2023-44487, and CVE-2025-8671, where the server is made to reset them."""
    for _ in range(1200):
        stream_id = raw.request(path="/test/Chat", _other="x" if malformed else None)
        raw.http2.reset_stream(stream_id)
    raw.write()
    assert await raw.ended() == ErrorCodes.ENHANCE_YOUR_CALM
    assert len(site.calls) == 0 if malformed else 1000 < len(site.calls) < 1200
    await until(lambda: all(call.over for call in site.calls), "the end of all calls")


async def test_a_client_that_measures_the_line_is_no_flood(raw: Raw) -> None:
    """The official one pings for nearly every message, and opens windows as it reads."""
    for _ in range(500):
        raw.write(*[PingFrame(0, b"12345678")] * 4, *[WindowUpdateFrame(0, 100)] * 4)
        assert await raw.echo() == b"still there"


async def test_a_head_that_is_too_long(raw: Raw, site: Site) -> None:
    raw.request(long="x" * 33_000)
    assert await raw.ended() == ErrorCodes.ENHANCE_YOUR_CALM
    assert site.calls == []


async def test_a_head_without_end(raw: Raw, site: Site) -> None:
    raw.write(HeadersFrame(1, b""), *(ContinuationFrame(1, b"") for _ in range(64)))
    assert await raw.ended() == ErrorCodes.PROTOCOL_ERROR
    assert site.calls == []


async def test_half_messages_take_room_that_all_share() -> None:
    """Messages that are whole need none; what is given up makes room again."""
    async with serving(room=5 << 19) as site, site.connect() as raw, site.connect() as other:
        halves = [await half(raw, 1 << 20) for _ in range(2)]
        refused = await half(other, 1 << 20)
        answer = await other.answer(refused)
        assert answer.status == ("8", "The server holds too many unfinished messages.")
        assert await other.echo() == b"still there"
        raw.http2.reset_stream(halves[0])
        assert await raw.echo() == b"still there"
        again = await half(other, 1 << 20)
        other.http2.send_data(again, b"x", end_stream=True)
        raw.http2.send_data(halves[1], b"x", end_stream=True)
        assert (await raw.answer(halves[1])).status[0] == "10"
        assert (await other.answer(again)).status[0] == "10"


async def half(raw: Raw, size: int) -> int:
    """A call that has sent all of a message but its last byte, if it was let."""
    stream_id = raw.request(path="/test/Refuse", code="ABORTED")
    raw.http2.send_data(stream_id, HALF)
    left = size - 1
    while left:
        room = min(raw.http2.local_flow_control_window(stream_id), 16384, left)
        if room:
            raw.http2.send_data(stream_id, bytes(room))
            left -= room
        elif not await raw.may_send(stream_id):
            break
    return stream_id


def test_empty_messages_take_room_too() -> None:
    room = UploadRoom(128 * 1000)
    inbox = Inbox("identity", 100, room)
    assert len(list(inbox.feed(bytes(5) * 999 + b"\0\0\0\0\1"))) == 999
    assert room.left == 0
    inbox.release()
    assert room.left == 128 * 999
    inbox.close()
    assert room.left == 128 * 1000


async def test_a_request_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation may pause between messages, and not within one."""
    monkeypatch.setattr(call_module, "STALLED_SECONDS", 0.0)
    async with serving(keep_alive=0.05) as site, site.connect() as raw:
        pausing = raw.request(path="/test/Chat")
        head, body, chat = raw.request(), raw.request(), raw.request(path="/test/Chat")
        for stream_id in (body, chat):
            raw.http2.send_data(stream_id, b"\0\0\0\0\2a")
        for stream_id in (head, body, chat):
            assert (await raw.answer(stream_id)).status == ("4", "The rest of the request did not come.")
        raw.send(pausing, b"hi")
        assert (await raw.answer(pausing)).data == b"\0\0\0\0\2hi"


async def test_whoever_does_not_answer_a_ping_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep_alive_module, "ANSWER_SECONDS", 0.2)
    async with serving(keep_alive=0.05) as site, site.connect() as silent, site.connect() as alive:
        silent.send(silent.request(path="/test/Gate"), b"")
        silent.write()
        await until(lambda: len(site.calls) == 1, "the call")
        for _ in range(3):
            await alive.wait(PingReceived)
        while await silent.reader.read(1000):  # Nobody answers here.
            pass
        assert site.calls[0].over
        assert await alive.echo() == b"still there"
        site.gate.set()


def test_whoever_answered_while_the_process_stood_still_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the loop of the gRPC process, which has to read before it looks at the time."""
    monkeypatch.setattr(keep_alive_module, "ANSWER_SECONDS", 0.2)

    async def stand_still() -> None:
        async with serving(keep_alive=0.05) as site, site.connect() as raw:
            ping = await raw.frame(PingFrame)
            raw.write(PingFrame(0, ping.opaque_data, flags=["ACK"]))
            time.sleep(0.5)  # noqa: ASYNC251
            await raw.frame(PingFrame)

    uvloop.run(stand_still())


async def test_whoever_sends_anything_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep_alive_module, "ANSWER_SECONDS", 0.2)
    async with serving(keep_alive=0.05) as site, site.connect() as raw:
        for _ in range(3):
            await raw.frame(PingFrame)  # which is not answered
            raw.write(PingFrame(0, b"12345678"))
        assert (await raw.frame(PingFrame)).flags == {"ACK"}


async def test_whoever_does_not_read_is_not_read(site: Site) -> None:
    """What waits for the peer is bounded, whatever it sends; once it reads, it gets all."""
    async with site.connect() as raw:
        raw.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await until(lambda: site.server._connections, "the connection")
        (connection,) = site.server._connections
        transport = connection._transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        raw.request(end=True)
        raw.write()
        fields = [(":method", "POST"), (":scheme", "http"), (":path", "/test/Echo"), ("te", "trailers")]
        block = raw.http2.encoder.encode([*fields, ("content-type", "application/grpc")])
        raw.writer.transport.pause_reading()
        calls = 1
        while transport.is_reading():
            streams = range(2 * calls + 1, 2 * calls + 1001, 2)
            raw.write(*(HeadersFrame(number, block, flags=["END_HEADERS", "END_STREAM"]) for number in streams))
            calls += len(streams)
            served = lambda: connection._http2.highest_inbound_stream_id == 2 * calls - 1  # noqa: B023, E731
            await until(lambda: served() or not transport.is_reading(), "the server")  # noqa: B023
        assert transport.get_write_buffer_size() < 1 << 20
        raw.writer.transport.resume_reading()
        for _ in range(calls):
            assert (await raw.frame(HeadersFrame)).flags == {"END_HEADERS", "END_STREAM"}
