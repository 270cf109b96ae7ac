"""How a server ends: what is under way has its time, nothing new begins, nobody is left without an answer."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import DataFrame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame

from a2a_host.bindings.grpc.transport.server import tls_context
from tests.grpc.transport.conftest import Site, serving
from tests.grpc.transport.raw import Raw
from tests.tasks_app.world import until


async def test_nobody_there(site: Site) -> None:
    await site.server.stop(60)
    with pytest.raises(ConnectionRefusedError):
        async with site.connect():
            pass


async def test_idle_connections_end_at_once(site: Site) -> None:
    async with site.channel() as channel:
        call = channel.unary_unary("/test/Echo")
        assert await call(b"hi", timeout=20) == b"hi"
        await asyncio.wait_for(site.server.stop(60), 20)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(b"hi", timeout=20)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_open_calls_are_finished(site: Site) -> None:
    async with site.channel() as channel:
        waiting = asyncio.ensure_future(channel.unary_unary("/test/Gate")(b"hi", timeout=20))
        streaming = channel.unary_stream("/test/Stream")(b"x", metadata=[("times", "10000")], timeout=20)
        await streaming.read()
        await until(lambda: len(site.calls) == 2, "the calls")
        stopping = asyncio.ensure_future(site.server.stop(60))
        read = 1
        while await streaming.read() is not grpc.aio.EOF:
            read += 1
        assert read == 10_000
        assert not stopping.done()
        site.gate.set()
        assert await waiting == b"hi"
        await asyncio.wait_for(stopping, 20)


async def test_calls_that_take_longer_are_unavailable(site: Site) -> None:
    """A stream is cancelled; another handler goes on, and nobody hears of it."""
    async with site.channel() as channel:
        streaming = channel.unary_stream("/test/Stream")(bytes(100_000), timeout=20)
        waiting = channel.unary_unary("/test/Gate")(b"hi", timeout=20)
        talking = channel.stream_stream("/test/Chat")(timeout=20)
        await until(lambda: len(site.calls) == 3, "the calls")
        await site.server.stop(0.1)
        with pytest.raises(grpc.aio.AioRpcError):
            await _all_of(streaming)
        for call in (streaming, waiting, talking):
            assert await call.code() is grpc.StatusCode.UNAVAILABLE
            assert await call.details() == "The server is shutting down."
    assert sorted(site.ended) == ["chat", "stream"]
    site.gate.set()
    await until(lambda: "gate" in site.ended, "the end of the third")


async def test_a_connection_is_told_first_and_then_cut(raw: Raw, site: Site) -> None:
    """What was sent before the client heard of it is served; what is sent later never began."""
    open_id = raw.request(path="/test/Gate")
    raw.send(open_id, b"")
    raw.write()
    await until(lambda: len(site.calls) == 1, "the call")
    stopping = asyncio.ensure_future(site.server.stop(60))
    notice = await raw.frame(GoAwayFrame)
    assert (notice.last_stream_id, notice.error_code) == (2**31 - 1, ErrorCodes.NO_ERROR)
    ping = await raw.frame(PingFrame)
    late_id = raw.request(path="/test/Gate")
    raw.send(late_id, b"")
    raw.write(PingFrame(0, ping.opaque_data, flags=["ACK"]))
    cut = await raw.frame(GoAwayFrame)
    assert (cut.last_stream_id, cut.error_code) == (late_id, ErrorCodes.NO_ERROR)
    refused_id = raw.request(path="/test/Echo")
    raw.send(refused_id, b"")
    raw.write()
    refusal = await raw.frame(RstStreamFrame)
    assert (refusal.stream_id, refusal.error_code) == (refused_id, ErrorCodes.REFUSED_STREAM)
    assert not stopping.done()
    site.gate.set()
    for stream_id in (open_id, late_id):
        assert (await raw.frame(HeadersFrame)).stream_id == stream_id
        assert (await raw.frame(DataFrame)).data == bytes(5)
        assert (await raw.frame(HeadersFrame)).flags == {"END_HEADERS", "END_STREAM"}
    assert await raw.reader.read() == b""
    await asyncio.wait_for(stopping, 20)
    assert [call.request.path for call in site.calls] == ["/test/Gate", "/test/Gate"]


async def test_a_peer_that_hears_nothing_is_cut_off_after_the_grace(raw: Raw, site: Site) -> None:
    raw.send(raw.request(path="/test/Stream"), bytes(1000))
    raw.write()
    await until(lambda: len(site.calls) == 1, "the call")
    await asyncio.wait_for(site.server.stop(0.1), 20)
    assert site.ended == ["stream"]


async def test_tls_is_for_http_2_alone(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    async with serving(tls=tls_context(str(cert), str(key))) as site:
        credentials = grpc.ssl_channel_credentials(cert.read_bytes())
        async with grpc.aio.secure_channel(f"127.0.0.1:{site.port}", credentials) as channel:
            assert await channel.unary_unary("/test/Echo")(bytes(500_000), timeout=20) == bytes(500_000)
        trusting = ssl.create_default_context(cafile=str(cert))
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=trusting)
        assert await reader.read() == b""
        writer.close()


async def _all_of(call: Any) -> list[bytes]:
    return [message async for message in call]
