"""A connection to PostgreSQL that the event loop watches all the time.

The driver's own way asks the loop to watch the socket anew for each step of each statement, which costs more than the
statement of one task. Here the socket is watched once, and prepared statements go out and come back in callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

Notified = Callable[[str, str], None]


class NotSentError(psycopg.OperationalError):
    """The connection was lost before the statement was sent: it has done nothing."""


class Link:
    """One statement at a time. `notified` is called with channel and payload of each notification.

    `broken` is done when the connection is lost.
    """

    def __init__(self, connection: psycopg.AsyncConnection, notified: Notified | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        self._socket = self._pgconn.socket
        self._notified = notified
        self._waiter: asyncio.Future[list[PGresult]] | None = None
        self._results: list[PGresult] = []
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._socket, self._readable)

    @classmethod
    async def open(
        cls, dsn: str, statements: Mapping[str, str], notified: Notified | None = None, listen: Sequence[str] = ()
    ) -> Link:
        """Connect, prepare statements by name, listen to channels. Raises psycopg.OperationalError."""
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        for name, sql in statements.items():
            await connection.execute(f"PREPARE {name} AS {sql}")
        link = cls(connection, notified)
        for channel in listen:
            await link.command(f"LISTEN {channel}")
        return link

    async def execute(self, name: str, parameters: Sequence[str | None]) -> list[str | None]:
        """Run a prepared statement; returns the first column of its rows as text. Raises psycopg.Error."""
        (result,) = await self._execute(name, parameters)
        return _first_column(result)

    async def fetch(self, name: str, parameters: Sequence[str | None]) -> list[tuple[Any, ...]]:
        """Run a prepared statement; returns its rows with values as the driver reads them. Raises psycopg.Error."""
        (result,) = await self._execute(name, parameters)
        if result.status != ExecStatus.TUPLES_OK:
            raise error_from_result(result)
        loader = Transformer(self._connection)
        loader.set_pgresult(result)
        return loader.load_rows(0, result.ntuples, tuple)

    async def command(self, sql: str) -> None:
        """Run a statement without parameters or rows. Raises psycopg.Error."""
        (result,) = await self._run(lambda: self._pgconn.send_query(sql.encode()))
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)

    async def close(self) -> None:
        """Close the connection."""
        self._unwatch()
        await self._connection.close()

    async def _execute(self, name: str, parameters: Sequence[str | None]) -> list[PGresult]:
        encoded = [None if p is None else p.encode() for p in parameters]
        for parameter in encoded:
            if parameter is not None and b"\0" in parameter:
                raise psycopg.DataError("PostgreSQL has no text with U+0000")  # libpq would send what is before it
        return await self._run(lambda: self._pgconn.send_query_prepared(name.encode(), encoded))

    async def _run(self, send: Callable[[], None]) -> list[PGresult]:
        if self.broken.done():
            raise NotSentError("the connection is lost")
        waiter: asyncio.Future[list[PGresult]] = self._loop.create_future()
        self._waiter = waiter
        send()
        self._flush()
        return await waiter

    def _flush(self) -> None:
        if self._pgconn.flush():
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        try:
            if not self._pgconn.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.OperationalError as error:
            self._break(error)

    def _readable(self) -> None:
        self._consume()
        if self._waiter is not None and not self.broken.done():
            # The answer is not whole. libuv calls once for an error on the socket and then watches it no more; what
            # there is to read besides, such as the end, is there already.
            self._consume()

    def _consume(self) -> None:
        """Take in what has arrived."""
        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError as error:
            self._break(error)
            return
        while (notification := self._pgconn.notifies()) is not None:
            if self._notified is not None:
                self._notified(notification.relname.decode(), notification.extra.decode())
        if self._waiter is not None:
            self._collect()
        if self._pgconn.status == ConnStatus.BAD:
            self._break(psycopg.OperationalError("the connection is lost"))

    def _collect(self) -> None:
        while not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            if result is not None:
                self._results.append(result)
                continue
            results, self._results = self._results, []
            waiter, self._waiter = self._waiter, None
            if waiter is not None and not waiter.done() and self._pgconn.status == ConnStatus.OK:
                waiter.set_result(results)
            else:
                self._waiter = waiter  # the connection went with the answer: `_readable` breaks it
            return

    def _break(self, error: psycopg.OperationalError) -> None:
        self._unwatch()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _unwatch(self) -> None:
        if not self.broken.done():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self.broken.set_result(None)


def _first_column(result: PGresult) -> list[str | None]:
    if result.status != ExecStatus.TUPLES_OK:
        raise error_from_result(result)
    values = [result.get_value(row, 0) for row in range(result.ntuples)]
    return [None if value is None else bytes(value).decode() for value in values]
