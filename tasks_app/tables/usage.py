"""How often each operation is called: counted in memory, written every few seconds, off the way of every call.

A process that is killed loses what it counted since its last write, `FLUSH_SECONDS` at most; one that stops loses
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Protocol

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from protocol.timestamps import now
from tasks_app.tables.arrays import arrays, printed, text

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 5.0
COUNTERS_MAX = 10_000
"""Counters that may wait to be written. Beyond it, with the database away, callers are no longer told apart."""
OTHERS = "(others)"
"""Stands for the callers that were not told apart; an owner of a key with this name shares its row."""
_PATIENCE_SECONDS = 2.0

# In the order of the unique key, so that two processes never wait for each other. The counters of an agent that was
# deleted meanwhile go with it.
_WRITE = """INSERT INTO agents_usage AS u
        (agent_id, binding, version, operation, caller, calls, errors, first_seen, last_seen)
    SELECT c.* FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[],
        %s::timestamptz[], %s::timestamptz[])
        AS c(agent_id, binding, version, operation, caller, calls, errors, first_seen, last_seen)
    JOIN agents_agent a ON a.id = c.agent_id ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (agent_id, binding, version, operation, caller) DO UPDATE
    SET calls = u.calls + excluded.calls, errors = u.errors + excluded.errors,
        first_seen = least(u.first_seen, excluded.first_seen), last_seen = greatest(u.last_seen, excluded.last_seen)"""


class Key(NamedTuple):
    """What is counted apart. `dialect` is binding and version as in `Call`."""

    agent_id: int
    dialect: str
    operation: str
    caller: str


@dataclass(slots=True)
class Counter:
    """Calls, those of them that were refused or failed, and when the first and the last one ended."""

    calls: int
    errors: int
    first: datetime
    last: datetime

    def add(self, other: Counter) -> None:
        """Count what another counter has counted, too."""
        self.calls += other.calls
        self.errors += other.errors
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)


Counters = dict[Key, Counter]


@dataclass(slots=True)
class _Unclear:
    """Counters whose transaction may have been committed: the connection broke before the database said so."""

    transaction: str
    counters: Counters


class Usage:
    """The counters of one process."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool
        self._counters: Counters = {}
        self._unclear: _Unclear | None = None
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Begin to write every `FLUSH_SECONDS`; gives the task that does."""
        self._task = asyncio.create_task(self._flush_now_and_then(), name="writer of usage counters")
        return self._task

    async def stop(self) -> None:
        """Write what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._try_to_flush()

    def count(self, key: Key, failed: bool) -> None:
        """One call more."""
        at = now()
        counter = self._counters.get(key)
        if counter is None:
            self._add(self._counters, key, Counter(1, failed, at, at))
        else:
            counter.calls += 1
            counter.errors += failed
            counter.last = at

    async def flush(self) -> None:
        """Write what was counted, once, however often it is tried. Raises psycopg.Error or PoolTimeout; then nothing
        is lost."""
        async with self._writing:
            await self._clear_up()
            if not self._counters:
                return
            counters, self._counters = self._counters, {}
            transaction = ""
            try:
                async with self._pool.connection(timeout=_PATIENCE_SECONDS) as connection, connection.transaction():
                    row = await (await connection.execute("SELECT pg_current_xact_id()::text")).fetchone()
                    assert row is not None
                    await connection.execute(_WRITE, _columns(counters))
                    transaction = row[0]
            except BaseException as error:
                if transaction and isinstance(error, psycopg.OperationalError | asyncio.CancelledError):
                    self._unclear = _Unclear(transaction, counters)
                else:
                    self._take_back(counters)
                raise

    async def _clear_up(self) -> None:
        """Ask how a transaction ended whose end was not heard."""
        unclear = self._unclear
        if unclear is None:
            return
        async with self._pool.connection(timeout=_PATIENCE_SECONDS) as connection:
            cursor = await connection.execute("SELECT pg_xact_status(%s::xid8)", [unclear.transaction])
            row = await cursor.fetchone()
        assert row is not None
        if row[0] == "in progress":
            raise psycopg.OperationalError("an earlier write is still going on")
        if row[0] == "aborted":
            self._take_back(unclear.counters)
        self._unclear = None

    def _take_back(self, counters: Counters) -> None:
        for key, counter in counters.items():
            self._add(self._counters, key, counter)

    @staticmethod
    def _add(counters: Counters, key: Key, counter: Counter) -> None:
        if key not in counters and len(counters) >= COUNTERS_MAX:
            key = key._replace(caller=OTHERS)
        held = counters.setdefault(key, counter)
        if held is not counter:
            held.add(counter)

    async def _flush_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self._try_to_flush()

    async def _try_to_flush(self) -> None:
        try:
            await self.flush()
        except (psycopg.Error, PoolTimeout) as error:
            logger.warning("Usage was not written, the next try will: %s", type(error).__name__)
        except Exception:  # It must not end the writing of later counters.
            logger.exception("Usage was not written")


def _columns(counters: Counters) -> list[str]:
    return arrays([_row(key, counter) for key, counter in counters.items()], 9)


def _row(key: Key, counter: Counter) -> tuple[str, ...]:
    binding, _, version = key.dialect.rpartition("/")
    return (
        str(key.agent_id),
        text(binding),
        text(version),
        text(key.operation),
        text(key.caller),
        str(counter.calls),
        str(int(counter.errors)),
        text(printed(counter.first)),
        text(printed(counter.last)),
    )


class Call(Protocol):
    """What is counted of a call, whose module stands above this one."""

    @property
    def usage(self) -> Usage:
        """The counters of the process that serves it."""

    @property
    def usage_key(self) -> tuple[int, str, str]:
        """(agent id, dialect, caller)"""


def count(call: Call, operation: str, failed: bool) -> None:
    """Count a call of an operation, by its name in the specification. `failed`: it was answered with an error.

    Calls count whose caller is known and whose operation the host serves; streams when they were opened.
    """
    agent_id, dialect, caller = call.usage_key
    call.usage.count(Key(agent_id, dialect, operation, caller), failed)


class counted:
    """`with counted(call, "GetTask"):` counts what is done inside when it ends, as failed when it raises.

    `call.dialect` counts as it is at the end. A caller who hangs up makes no failure.
    """

    __slots__ = ("_call", "_operation")

    def __init__(self, call: Call, operation: str) -> None:
        self._call = call
        self._operation = operation

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        count(self._call, self._operation, isinstance(error, Exception))
