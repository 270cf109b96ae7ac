"""A server that answers as a test wants: rightly, wrongly, in pieces, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from benchmarks.wire import Endpoint

Answer = Callable[[str, dict[str, Any]], list[bytes]]
"""(request line, body) -> the pieces of bytes to write, one by one. Ending with CLOSE closes the connection."""

CLOSE = b""
AT = "2026-01-02T03:04:05.678Z"


def response(body: bytes, status: int = 200, headers: str = "") -> bytes:
    """A whole HTTP/1.1 response."""
    return f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def json_response(value: object, status: int = 200) -> bytes:
    """A whole response with a JSON body."""
    return response(json.dumps(value).encode(), status)


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM_HEAD = b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(value: object) -> bytes:
    """One SSE event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def echo_task(text: str, state: str = "TASK_STATE_COMPLETED", task_id: str = "t1", at: str = AT) -> dict[str, Any]:
    """A task that echoes `text`, with the message that asked for it."""
    return {
        "id": task_id,
        "contextId": "c1",
        "status": {"state": state, "timestamp": at},
        "artifacts": [{"artifactId": "a", "name": "echo", "parts": [{"text": text}]}],
        "history": [{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}],
    }


def text_of(body: dict[str, Any]) -> str:
    """The text that a SendMessage or SendStreamingMessage call carries, in either binding."""
    text: str = body.get("params", body)["message"]["parts"][0]["text"]
    return text


async def read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
    """One request: its first line, and its body ({} without one)."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    return head.split("\r\n")[0], json.loads(body) if body else {}


Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(handle: Handle) -> AsyncIterator[Endpoint]:
    """A server on a free loopback port. Its connections end with it, whatever they wait for."""
    running: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await handle(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=256)
    try:
        yield Endpoint.parse(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/rpc")
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@contextlib.asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[Endpoint]:
    """A server that answers each request with the pieces that `answer` gives."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            for piece in answer(*await read_request(reader)):
                if piece == CLOSE:
                    return
                writer.write(piece)
                await writer.drain()

    async with listening(handle) as endpoint:
        yield endpoint
