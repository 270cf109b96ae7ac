"""The connection to PostgreSQL that is watched all the time, when it ends badly."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from pathlib import Path
from threading import Thread

import psycopg
import pytest
import uvloop

from tasks_app.tables.link import Link
from tests.tasks_app.world import soon


def message(kind: bytes, body: bytes) -> bytes:
    """A message of PostgreSQL's protocol."""
    return kind + struct.pack("!I", len(body) + 4) + body


_WELCOME = (
    message(b"R", struct.pack("!I", 0))
    + message(b"S", b"server_version\x0018.0\x00")
    + message(b"S", b"client_encoding\x00UTF8\x00")
    + message(b"K", struct.pack("!II", 1, 1))
    + message(b"Z", b"I")
)
_LAST_WORDS = message(b"E", b"SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection\x00\x00")


def serve_one_connection(listener: socket.socket) -> None:
    """Welcome a client, and end, like a server that is killed, when its first statement is there and before it is
    read: the system then tells the client of an error, not of an end."""
    client, _ = listener.accept()
    with client:
        client.recv(65536)
        client.sendall(_WELCOME)
        select.select([client], [], [])
        client.sendall(_LAST_WORDS)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_server_that_dies_with_a_statement_unread_is_noticed(loop: object, tmp_path: Path) -> None:
    """libuv calls once for an error on a socket and watches it no more; the last words are no end yet."""

    async def ask() -> None:
        link = await Link.open(f"host={tmp_path} port=5432 user=u dbname=d", {})
        with pytest.raises(psycopg.OperationalError):
            await soon(link.command("SELECT 1"))
        assert link.broken.done()
        await link.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        listener.listen()
        server = Thread(target=serve_one_connection, args=(listener,))
        server.start()
        with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
            runner.run(ask())
        server.join()
