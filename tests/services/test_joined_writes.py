"""The transport that sends a response's head with its body, under a real uvicorn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from a2a_host.joined_writes import JoiningHttpProtocol

PATIENCE = 10.0
LARGE = bytes(range(256)) * 1024


@asynccontextmanager
async def serving(
    application: Any, server: uvicorn.Server | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of this application."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = server or make_server(application)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        async with asyncio.timeout(PATIENCE):
            yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await asyncio.wait_for(serving, PATIENCE)


def make_server(application: Any, **options: Any) -> uvicorn.Server:
    config = uvicorn.Config(application, http=JoiningHttpProtocol, lifespan="off", log_level="error", **options)
    return uvicorn.Server(config)


async def respond(send: Any, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def test_a_small_response_comes_in_one_piece() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"hello")

    async with serving(application) as (reader, writer):
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            piece = await reader.read(65536)
            assert piece.startswith(b"HTTP/1.1 200 OK\r\n")
            assert piece.endswith(b"\r\n\r\nhello")


async def test_pipelined_and_large_responses_keep_their_order() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await respond(send, {"/large": LARGE, "/head": b"HTTP/1.1 is no head here", "/empty": b""}[scope["path"]])

    async with serving(application) as (reader, writer):
        for path in ("/large", "/head", "/empty", "/large"):
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for body in (LARGE, b"HTTP/1.1 is no head here", b"", LARGE):
            head = await reader.readuntil(b"\r\n\r\n")
            assert f"content-length: {len(body)}\r\n".encode() in head
            assert await reader.readexactly(len(body)) == body


async def test_a_head_does_not_wait_for_a_late_body() -> None:
    go_on = asyncio.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"late"})

    async with serving(application) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        go_on.set()
        assert await reader.readuntil(b"0\r\n\r\n") == b"4\r\nlate\r\n0\r\n\r\n"


async def test_a_connection_that_ends_says_everything_first() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"")

    async with serving(application) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_connection_that_is_new_when_the_server_stops_is_heard_out() -> None:
    """A proxy that has connected sends its request, and does not send it twice. One that is idle is closed."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"hello")

    server = make_server(application)
    async with serving(application, server) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read(65536)).endswith(b"hello")
        address = writer.get_extra_info("peername")
        newer, new = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read(65536)).endswith(b"hello"), "the server has taken the newer connection before that"
        assert len(server.server_state.connections) == 2
        server.should_exit = True
        assert await reader.read() == b"", "the idle one"
        new.write(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")
        assert (await newer.read()).endswith(b"\r\n\r\nhello")
        new.close()


async def test_one_connection_too_many_is_told_so() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await respond(send, b"hello")

    async with serving(application, make_server(application, limit_concurrency=2)) as (reader, writer):
        address = writer.get_extra_info("peername")
        newer, new = await asyncio.open_connection(*address)
        new.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await newer.read()).startswith(b"HTTP/1.1 503 ")
        new.close()
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"hello")
