"""A server of the transport in the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from a2a_host.bindings.grpc.transport.call import Method, ServerCall
from a2a_host.bindings.grpc.transport.server import Server
from a2a_host.bindings.grpc.transport.status import StatusError
from tests.grpc.transport.raw import Raw, connect

LARGEST = 1 << 20


class Site:
    """A server with methods for tests, and what their handlers saw."""

    def __init__(self, **limits: Any) -> None:
        self.server = Server(self.find, **{"largest": LARGEST, "room": 4 << 20, "keep_alive": 60.0} | limits)
        self.port = 0
        self.calls: list[ServerCall] = []
        self.ended: list[str] = []
        self.gate = asyncio.Event()
        self.methods = {
            "/test/Echo": Method(self.echo),
            "/test/Gate": Method(self.wait_at_gate),
            "/test/Stream": Method(self.stream),
            "/test/Chat": Method(self.chat, reads=True),
            "/test/Fail": Method(self.fail),
            "/test/Refuse": Method(self.refuse),
        }

    def find(self, path: str) -> Method | None:
        return self.methods.get(path)

    async def echo(self, call: ServerCall) -> bytes:
        self.calls.append(call)
        return bytes(call.take())

    async def wait_at_gate(self, call: ServerCall) -> bytes:
        """Answers when the gate opens, whoever still waits."""
        self.calls.append(call)
        await self.gate.wait()
        self.ended.append("gate")
        return bytes(call.take())

    async def stream(self, call: ServerCall) -> None:
        """Sends its message again and again, to the end of its caller or of the numbers in metadata."""
        self.calls.append(call)
        message = bytes(call.take())
        times = int(dict(call.request.metadata).get("times", 1 << 30))
        call.leave_with_caller()
        call.set_initial_metadata([("first", "1"), ("raw-bin", b"\0\xff")])
        call.write_head()
        try:
            for _ in range(times):
                await call.write(message)
        finally:
            self.ended.append("stream")

    async def chat(self, call: ServerCall) -> None:
        self.calls.append(call)
        call.leave_with_caller()
        try:
            while (message := await call.read()) is not None:
                await call.write(bytes(message))
        finally:
            self.ended.append("chat")

    async def fail(self, call: ServerCall) -> bytes:
        raise KeyError("secret")

    async def refuse(self, call: ServerCall) -> bytes:
        code = grpc.StatusCode[dict(call.request.metadata)["code"]]  # type: ignore[misc]
        raise StatusError(code, "žluť: 100 %\n", [("why", "so"), ("raw-bin", b"\0\xff")])

    def channel(self, *options: tuple[str, Any]) -> grpc.aio.Channel:
        """The official client."""
        return grpc.aio.insecure_channel(f"127.0.0.1:{self.port}", options)

    def connect(self, greet: bool = True) -> Any:
        """A client that sends what it is told to."""
        return connect(self.port, greet)


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None, **limits: Any) -> AsyncIterator[Site]:
    """A site with limits of its own, or with TLS."""
    site = Site(**limits)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        site.port = listener.getsockname()[1]
        await site.server.start(listener, tls)
        try:
            yield site
        finally:
            await site.server.stop(0)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as made:
        yield made


@pytest.fixture
async def raw(site: Site) -> AsyncIterator[Raw]:
    async with site.connect() as connected:
        yield connected
