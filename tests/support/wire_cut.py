"""A PostgreSQL connection that breaks at a chosen moment: a relay on loopback between a client and the real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_READY = b"Z\x00\x00\x00\x05I"  # ReadyForQuery, outside of a transaction: what was asked for is committed
_IN_TRANSACTION = b"Z\x00\x00\x00\x05T"


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


@asynccontextmanager
async def open_wire_cut(dsn: str) -> AsyncIterator[WireCut]:
    """A relay to the server of `dsn` inside the block."""
    wire = WireCut(dsn)
    await wire.start()
    try:
        yield wire
    finally:
        await wire.stop()
