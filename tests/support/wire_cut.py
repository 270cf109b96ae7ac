"""A PostgreSQL connection that breaks at a chosen moment, or falls silent: a relay on loopback between a client and the
real server."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_READY = b"Z\x00\x00\x00\x05I"  # ReadyForQuery, outside of a transaction: what was asked for is committed
_IN_TRANSACTION = b"Z\x00\x00\x00\x05T"
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27  # Linux; the module socket has no names for them
_DROP = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # the program "return 0": no byte passes


class WireCut:
    """Relays until told to cut. `dsn` leads through it."""

    def __init__(self, dsn: str) -> None:
        parts = conninfo_to_dict(dsn)
        self._socket = Path(str(parts["host"])) / f".s.PGSQL.{parts.get('port', 5432)}"
        self._dsn = dsn
        self._links: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._cut_next_reply = False
        self._open = True
        self._heard = asyncio.Event()  # cleared while the network is silent
        self._heard.set()
        self.dsn = ""
        self.cut_happened = asyncio.Event()

    async def start(self) -> None:
        """Listen on a free port of loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.dsn = make_conninfo(self._dsn, host="127.0.0.1", port=port, gssencmode="disable", sslmode="disable")

    async def stop(self) -> None:
        """Cut everything and stop to listen."""
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def cut_next_reply(self) -> None:
        """Let the next request through, and break the connection once the server has committed and before its reply
        gets to the client. A connection's start-up is no request."""
        self.cut_happened.clear()
        self._cut_next_reply = True

    def cut(self) -> None:
        """Break every connection now."""
        for link in self._links:
            link.transport.abort()

    def close_gate(self) -> None:
        """Break every connection, and let nobody in until `open_gate`."""
        self._open = False
        self.cut()

    def open_gate(self) -> None:
        """Let clients in again."""
        self._open = True

    async def fall_silent(self) -> None:
        """Like a network that swallows every packet: nobody is told anything, not even that something arrived."""
        self._heard.clear()
        assert self._server is not None
        while any(map(_unacknowledged, self._client_ends())):  # noqa: ASYNC110 - it would be sent again and again
            await asyncio.sleep(0.001)
        program = struct.pack("HL", 1, ctypes.addressof(_DROP))
        for end in (*self._server.sockets, *self._client_ends()):
            end.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)

    def be_heard(self) -> None:
        """Packets pass again, if they did not."""
        if self._heard.is_set() or self._server is None:
            return
        self._heard.set()
        for end in (*self._server.sockets, *self._client_ends()):
            end.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)

    def _client_ends(self) -> list[socket.socket]:
        """The relay's ends of its connections with clients."""
        ends = [link.get_extra_info("socket") for link in self._links if not link.is_closing()]
        return [end for end in ends if end.family == socket.AF_INET]

    async def _serve(self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if not self._open:
            client.transport.abort()
            return
        server_reader, server = await asyncio.open_unix_connection(str(self._socket))
        self._links |= {client, server}
        try:
            await asyncio.gather(self._relay(client_reader, server), self._relay_replies(server_reader, client))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            for link in (client, server):
                link.transport.abort()
                self._links.discard(link)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError

    async def _relay_replies(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        held, started = b"", False
        while data := await reader.read(65536):
            await self._heard.wait()
            if not (self._cut_next_reply and started):
                started = started or data.endswith(_READY)  # The first one ends the connection's start-up.
                client.write(data)
                await client.drain()
                continue
            held += data
            if held.endswith(_IN_TRANSACTION):
                client.write(held)
                held = b""
            if held.endswith(_READY):
                self._cut_next_reply = False
                self.cut_happened.set()
                raise ConnectionResetError
        raise ConnectionResetError


def _unacknowledged(end: socket.socket) -> int:
    """Packets that were sent and not confirmed yet: `tcpi_unacked` of Linux."""
    packets: int = struct.unpack_from("I", end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28), 24)[0]
    return packets


@asynccontextmanager
async def open_wire_cut(dsn: str) -> AsyncIterator[WireCut]:
    """A relay to the server of `dsn` inside the block."""
    wire = WireCut(dsn)
    await wire.start()
    try:
        yield wire
    finally:
        await wire.stop()
