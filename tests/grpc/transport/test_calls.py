"""Calls of the official client."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from tests.grpc.transport.conftest import LARGEST, Site
from tests.tasks_app.world import until

SECONDS = 20.0


async def refused(call: Any) -> Any:
    """The error that ends a call."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


async def test_a_message_comes_and_goes(site: Site) -> None:
    async with site.channel() as channel:
        for size in (0, 5, 16378, 16379, 16380, 65530, 65531, LARGEST):
            message = b"x" * size
            assert await channel.unary_unary("/test/Echo")(message, timeout=SECONDS) == message


async def test_what_a_handler_is_told(site: Site) -> None:
    metadata = (("a", "one"), ("a", "two"), ("b-bin", b"\0\xff"), ("b-bin", b""), ("c", "a, b "))
    async with site.channel(("grpc.default_authority", "Echo.Example.com:443")) as channel:
        await channel.unary_unary("/test/Echo")(b"", metadata=metadata, timeout=SECONDS)
    (call,) = site.calls
    own = [pair for pair in call.request.metadata if pair[0] != "user-agent"]
    assert own == [("a", "one"), ("a", "two"), ("b-bin", b"\0\xff"), ("b-bin", b""), ("c", "a, b ")]
    assert (call.request.path, call.request.authority) == ("/test/Echo", "Echo.Example.com:443")
    assert call.request.timeout == pytest.approx(SECONDS, abs=1)
    assert call.peer.startswith("('127.0.0.1', ")


@pytest.mark.parametrize("method", ["compression", "call"])
@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_compressed_messages(site: Site, method: str, compression: grpc.Compression) -> None:
    message = b"again and " * 50_000
    on_channel = compression if method == "compression" else None
    async with grpc.aio.insecure_channel(f"127.0.0.1:{site.port}", compression=on_channel) as channel:
        call = channel.unary_unary("/test/Echo")(message, timeout=SECONDS, compression=compression)
        assert await call == message
    assert site.calls[0].request.encoding == compression.name.lower()


async def test_a_message_beyond_the_limit(site: Site) -> None:
    async with site.channel() as channel:
        for path in ("/test/Echo", "/test/Chat"):
            error = await refused(channel.stream_unary(path)(iter([bytes(LARGEST + 1)]), timeout=SECONDS))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert error.details() == "A message has at most 1048576 bytes."
        assert await channel.unary_unary("/test/Echo")(b"then", timeout=SECONDS) == b"then"
    assert [call.request.path for call in site.calls] == ["/test/Chat", "/test/Echo"]


async def test_a_message_that_inflates_beyond_the_limit(site: Site) -> None:
    async with site.channel() as channel:
        call = channel.unary_unary("/test/Echo")
        error = await refused(call(bytes(50 << 20), timeout=SECONDS, compression=grpc.Compression.Gzip))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == "A message has at most 1048576 bytes."


async def test_an_answer_may_be_larger_than_any_request(site: Site) -> None:
    async with site.channel(("grpc.max_receive_message_length", -1)) as channel:
        async with asyncio.timeout(SECONDS):
            call = channel.unary_stream("/test/Stream")(bytes(LARGEST), metadata=[("times", "12")])
            assert [len(message) async for message in call] == [LARGEST] * 12


async def test_a_stream_and_its_metadata(site: Site) -> None:
    async with site.channel() as channel:
        call = channel.unary_stream("/test/Stream")(b"x", metadata=[("times", "3")], timeout=SECONDS)
        assert tuple(await call.initial_metadata()) == (("first", "1"), ("raw-bin", b"\0\xff"))
        assert [message async for message in call] == [b"x", b"x", b"x"]
        assert await call.code() is grpc.StatusCode.OK
    assert site.ended == ["stream"]


async def test_a_conversation(site: Site) -> None:
    async with site.channel() as channel:
        call = channel.stream_stream("/test/Chat")(timeout=SECONDS)
        for message in (b"one", b"", bytes(LARGEST), b"four"):
            await call.write(message)
            assert await call.read() == message
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
    assert site.ended == ["chat"]


async def test_a_status_with_its_message_and_metadata(site: Site) -> None:
    async with site.channel() as channel:
        error = await refused(channel.unary_unary("/test/Refuse")(b"", metadata=[("code", "ABORTED")], timeout=SECONDS))
    assert (error.code(), error.details()) == (grpc.StatusCode.ABORTED, "žluť: 100 %\n")
    assert tuple(error.trailing_metadata()) == (("why", "so"), ("raw-bin", b"\0\xff"))


async def test_a_handler_that_stumbles_tells_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    async with site.channel() as channel:
        error = await refused(channel.unary_unary("/test/Fail")(b"", timeout=SECONDS))
    assert (error.code(), error.details(), tuple(error.trailing_metadata())) == (grpc.StatusCode.UNKNOWN, "", ())
    assert "A call of /test/Fail by ('127.0.0.1', " in caplog.text
    assert "KeyError: 'secret'" in caplog.text


async def test_an_unknown_method(site: Site) -> None:
    async with site.channel() as channel:
        error = await refused(channel.stream_unary("/test/None")(iter([bytes(LARGEST)]), timeout=SECONDS))
        assert (error.code(), error.details()) == (grpc.StatusCode.UNIMPLEMENTED, "There is no such method.")


async def test_a_hundred_calls_at_a_time(site: Site) -> None:
    async with site.channel() as channel:
        call = channel.unary_unary("/test/Gate")
        calls = [asyncio.ensure_future(call(b"%d" % number, timeout=SECONDS)) for number in range(100)]
        await until(lambda: len(site.calls) == 100, "all calls")
        site.gate.set()
        assert await asyncio.gather(*calls) == [b"%d" % number for number in range(100)]


async def test_a_deadline_ends_the_call_and_not_its_handler(site: Site) -> None:
    async with site.channel() as channel:
        error = await refused(channel.unary_unary("/test/Gate")(b"", timeout=0.05))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: site.calls[0].over, "the server to know")
        site.gate.set()
        await until(lambda: site.ended == ["gate"], "the end of the handler")
        assert await channel.unary_unary("/test/Echo")(b"then", timeout=SECONDS) == b"then"


async def test_a_deadline_cancels_a_stream(site: Site) -> None:
    async with site.channel() as channel:
        call = channel.unary_stream("/test/Stream")(bytes(LARGEST), timeout=0.2)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            async for _ in call:
                pass
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: site.ended == ["stream"], "the end of the handler")


async def test_a_caller_who_hangs_up(site: Site) -> None:
    async with site.channel() as channel:
        waiting = channel.unary_unary("/test/Gate")(b"")
        streaming = channel.unary_stream("/test/Stream")(b"x" * 1000)
        talking = channel.stream_stream("/test/Chat")()
        await streaming.read()
        await talking.write(b"hi")
        await talking.read()
        await until(lambda: len(site.calls) == 3, "the calls")
        for call in (waiting, streaming, talking):
            call.cancel()
        await until(lambda: all(call.over for call in site.calls), "the end of all calls")
        await until(lambda: sorted(site.ended) == ["chat", "stream"], "the end of two handlers")
        site.gate.set()
        await until(lambda: "gate" in site.ended, "the end of the third")


async def test_a_connection_that_is_lost(site: Site) -> None:
    async with site.channel() as channel:
        waiting = channel.unary_unary("/test/Gate")(b"")
        streaming = channel.unary_stream("/test/Stream")(b"x" * 1000)
        await streaming.read()
        await until(lambda: len(site.calls) == 2, "the calls")
    assert waiting.cancelled()
    await until(lambda: site.ended == ["stream"], "the end of the handler of the stream")
    assert all(call.over for call in site.calls)
    site.gate.set()
    await until(lambda: site.ended == ["stream", "gate"], "the end of the other handler")


async def test_a_reader_who_does_not_read_holds_up_nobody(site: Site) -> None:
    """What fits into its windows is on its way, and the handler waits; other calls of the connection go on."""
    async with site.channel() as channel:
        slow = channel.unary_stream("/test/Stream")(bytes(100_000))
        await slow.read()
        for number in range(20):
            assert await channel.unary_unary("/test/Echo")(b"%d" % number, timeout=SECONDS) == b"%d" % number
        assert site.ended == []
        slow.cancel()
        await until(lambda: site.ended == ["stream"], "the end of the handler")
