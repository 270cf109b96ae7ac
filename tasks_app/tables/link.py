"""A connection to PostgreSQL that the event loop watches all the time.

The driver's own way asks the loop to watch the socket anew for each step of each statement, which costs more than the
statement of one task. Here the socket is watched once, and prepared statements go out and come back in callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from tasks_app.tables.busy_poll import BusyPoll

Notified = Callable[[str, str], None]
Answered = Callable[[Sequence[str | None] | Exception], None]
_Waiter = Callable[[list[PGresult] | Exception], None]


class NotSentError(psycopg.OperationalError):
    """The connection was lost before the statement was sent: it has done nothing."""


class Link:
    """One statement at a time. `notified` is called with channel and payload of each notification. For `poll_seconds`
    at most the loop polls for an answer instead of sleeping until it comes.

    `broken` is done when the connection is lost.
    """

    def __init__(
        self, connection: psycopg.AsyncConnection, notified: Notified | None = None, poll_seconds: float = 0
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        self._socket = self._pgconn.socket
        self._notified = notified
        self._busy_poll = BusyPoll(poll_seconds)
        self._waiter: _Waiter | None = None
        self._results: list[PGresult] = []
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._socket, self._readable)

    @classmethod
    async def open(
        cls,
        dsn: str,
        statements: Mapping[str, str],
        notified: Notified | None = None,
        listen: Sequence[str] = (),
        poll_seconds: float = 0,
    ) -> Link:
        """Connect, prepare statements by name, listen to channels. Raises psycopg.OperationalError."""
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        for name, sql in statements.items():
            await connection.execute(f"PREPARE {name} AS {sql}")
        link = cls(connection, notified, poll_seconds)
        for channel in listen:
            await link.command(f"LISTEN {channel}")
        return link

    def ask(self, name: str, parameters: Sequence[str | None], answered: Answered) -> None:
        """Send a prepared statement. `answered` is called with the first column of its rows as text, or an error, as
        soon as it is here, which is a turn of the loop earlier than a coroutine could go on. Raises psycopg.Error for
        one that cannot be sent."""
        encoded = _encoded(parameters)
        self._send(
            lambda: self._pgconn.send_query_prepared(name.encode(), encoded),
            lambda results: answered(_outcome(results)),
        )

    async def execute(self, name: str, parameters: Sequence[str | None]) -> Sequence[str | None]:
        """Run a prepared statement; returns the first column of its rows as text. Raises psycopg.Error."""
        return _first_column(await self._execute(name, parameters))

    async def fetch(self, name: str, parameters: Sequence[str | None]) -> list[tuple[Any, ...]]:
        """Run a prepared statement; returns its rows with values as the driver reads them. Raises psycopg.Error."""
        result = await self._execute(name, parameters)
        if result.status != ExecStatus.TUPLES_OK:
            raise error_from_result(result)
        loader = Transformer(self._connection)
        loader.set_pgresult(result)
        return loader.load_rows(0, result.ntuples, tuple)

    async def command(self, sql: str) -> None:
        """Run a statement without parameters or rows. Raises psycopg.Error."""
        result = await self._run(lambda: self._pgconn.send_query(sql.encode()))
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)

    async def close(self) -> None:
        """Close the connection."""
        self._unwatch()
        await self._connection.close()

    async def _execute(self, name: str, parameters: Sequence[str | None]) -> PGresult:
        encoded = _encoded(parameters)
        return await self._run(lambda: self._pgconn.send_query_prepared(name.encode(), encoded))

    async def _run(self, send: Callable[[], None]) -> PGresult:
        done: asyncio.Future[list[PGresult]] = self._loop.create_future()
        self._send(send, partial(_settle, done))
        (result,) = await done
        return result

    def _send(self, send: Callable[[], None], waiter: _Waiter) -> None:
        if self.broken.done():
            raise NotSentError("the connection is lost")
        send()
        self._flush()
        self._waiter = waiter
        self._busy_poll.begin()

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
        waiter = self._waiter
        self._consume()
        if waiter is not None and waiter is self._waiter and not self.broken.done():
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
            if self._pgconn.status == ConnStatus.OK:  # or the connection went with the answer: `_consume` breaks it
                results, self._results = self._results, []
                self._tell(results)
            return

    def _tell(self, outcome: list[PGresult] | Exception) -> None:
        self._busy_poll.end()
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter(outcome)

    def _break(self, error: psycopg.OperationalError) -> None:
        self._unwatch()
        self._tell(error)

    def _unwatch(self) -> None:
        if not self.broken.done():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self.broken.set_result(None)


def _encoded(parameters: Sequence[str | None]) -> list[bytes | None]:
    encoded = [None if p is None else p.encode() for p in parameters]
    for parameter in encoded:
        if parameter is not None and b"\0" in parameter:
            raise psycopg.DataError("PostgreSQL has no text with U+0000")  # libpq would send what is before it
    return encoded


def _settle(future: asyncio.Future[list[PGresult]], outcome: list[PGresult] | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _outcome(results: list[PGresult] | Exception) -> Sequence[str | None] | Exception:
    if isinstance(results, Exception):
        return results
    try:
        (result,) = results
        return _first_column(result)
    except Exception as error:
        return error


def _first_column(result: PGresult) -> list[str | None]:
    if result.status != ExecStatus.TUPLES_OK:
        raise error_from_result(result)
    values = [result.get_value(row, 0) for row in range(result.ntuples)]
    return [None if value is None else bytes(value).decode() for value in values]
