"""uvicorn's HTTP connection: sends the head of a response together with its body, one system call and one packet where
uvicorn makes two, and hears a new connection out when the server stops."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD = b"HTTP/1.1 "
_SMALL = 65536  # bytes up to which copying a body costs less than sending it on its own
_FIRST_REQUEST_SECONDS = 1.0  # that a connection may be old when its first request comes, as the server stops


class JoinedWrites:
    """A transport that holds a head back until the next write, or the next turn of the loop."""

    __slots__ = ("_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send, in order."""
        if self._head and len(data) < _SMALL:
            self._head, data = b"", self._head + data
            self._transport.write(data)
        elif data.startswith(_HEAD):
            self.flush()
            self._head = data
            self._loop.call_soon(self.flush)
        else:
            self.flush()
            self._transport.write(data)

    def flush(self) -> None:
        """Send what is held back."""
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)

    def close(self) -> None:
        """Send what is held back, then close."""
        self.flush()
        self._transport.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection over, as for a WebSocket."""
        self.flush()
        self._transport.set_protocol(protocol)


class JoiningHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        joined: Any = JoinedWrites(transport, self.loop)
        super().connection_made(joined)

    def shutdown(self) -> None:
        """The server stops. A proxy that has just connected is sending its request, and will not send it twice."""
        if self.cycle is None:
            self.loop.call_later(_FIRST_REQUEST_SECONDS, super().shutdown)
        else:
            super().shutdown()
