"""A gRPC server: where it listens, which methods it has, and how it stops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from a2a_host.bindings.grpc.transport.call import Method
from a2a_host.bindings.grpc.transport.connection import Connection
from a2a_host.bindings.grpc.transport.messages import Inbox, UploadRoom

_HANDSHAKE_SECONDS = 10.0
_BACKLOG = 2048
_TO_CLOSE = 1.0  # seconds for the last bytes of connections


class Server:
    """Serves the methods that `find` gives by their paths.

    `largest` are the bytes that a message may have; the unfinished ones of all callers may take `room` bytes together.
    An idle connection is asked every `keep_alive` seconds whether somebody is there.
    """

    def __init__(self, find: Callable[[str], Method | None], *, largest: int, room: int, keep_alive: float) -> None:
        self.find = find
        self.keep_alive = keep_alive
        self._connections: set[Connection] = set()
        self._largest = largest
        self._room = UploadRoom(room)
        self._deserted: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._empty = asyncio.Event()

    async def start(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Take connections of a bound socket."""
        self._listener = await asyncio.get_running_loop().create_server(
            lambda: Connection(self),
            sock=listener,
            backlog=_BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls is not None else None,
        )

    async def stop(self, grace: float) -> None:
        """Take no more calls, give open ones `grace` seconds, then end them as UNAVAILABLE."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.drain()
        await self._emptied(grace)
        for connection in list(self._connections):
            connection.end()
        await self._emptied(_TO_CLOSE)

    def inbox(self, encoding: str) -> Inbox:
        """What takes in the messages of a call. Raises StatusError."""
        return Inbox(encoding, self._largest, self._room)

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold on to a handler whose caller has gone."""
        self._deserted.add(task)
        task.add_done_callback(self._deserted.discard)

    def add(self, connection: Connection) -> None:
        """A connection has begun."""
        self._connections.add(connection)

    def discard(self, connection: Connection) -> None:
        """A connection has ended."""
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    async def _emptied(self, seconds: float) -> None:
        self._empty.clear()
        if self._connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), seconds)


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """TLS 1.2 or newer for HTTP/2, with PEM files. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")  # RFC 9113 §9.2.2 forbids the others of 1.2.
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(certificate, key)
    return context
