"""Reading tasks off the hot path of the ORM: everything that is asked for at one moment is read in one statement."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from msgspec import json
from psycopg_pool import AsyncConnectionPool

from protocol.errors import UnavailableError
from protocol.states import TaskState
from tasks_app.record import Event, EventKind, TaskRecord

TASK_COLUMNS = """t.id, t.agent_id, t.owner, t.context_id, t.state, t.status, t.status_at, t.created_at, t.metadata,
    t.last_seq, t.message_count, t.version, t.attempt, t.worker, t.lease_until, t.request"""
_EVENT_COLUMNS = "task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt, created_at"
# History and artifacts come as one text each, their entries between control characters, which JSON never holds raw.
# The task's own counters cut off what was stored after the row was read.
_ENTRY, _FIELD = "\x1e", "\x1f"
_HISTORY = """(SELECT string_agg(m.body, E'\\x1e' ORDER BY m.position) FROM tasks_app_message m
    WHERE m.task_id = t.id AND m.position <= t.message_count)"""
_ARTIFACTS = f"""(SELECT string_agg(concat_ws(E'\\x1f', e.seq, e.append, e.last_chunk, e.attempt,
        extract(epoch FROM e.created_at), to_json(e.artifact_id), coalesce(e.metadata, ''), e.body),
        E'\\x1e' ORDER BY e.seq)
    FROM tasks_app_event e WHERE e.task_id = t.id AND e.kind = {EventKind.ARTIFACT.value} AND e.seq <= t.last_seq)"""
_TASKS = {
    (
        history,
        artifacts,
    ): f"""SELECT {TASK_COLUMNS}, {_HISTORY if history else "NULL"}, {_ARTIFACTS if artifacts else "NULL"}
        FROM tasks_app_task t WHERE t.id = ANY(%s)"""
    for history in (True, False)
    for artifacts in (True, False)
}
_EVENTS_AFTER = f"""SELECT {_EVENT_COLUMNS} FROM unnest(%s::text[], %s::int[]) AS c(id, cursor)
    JOIN tasks_app_event e ON e.task_id = c.id AND e.seq > c.cursor ORDER BY task_id, seq"""
_EVENTS_PAGE = f"""SELECT {_EVENT_COLUMNS} FROM tasks_app_event
    WHERE task_id = %s AND seq > %s ORDER BY seq LIMIT %s"""
_STATUSES = f"""SELECT {_EVENT_COLUMNS} FROM tasks_app_event
    WHERE task_id = %s AND kind = {EventKind.STATUS.value} ORDER BY seq"""
_RECEIPT = """SELECT task_id, digest FROM tasks_app_receipt WHERE agent_id = %s AND owner = %s AND message_id = %s"""

_BATCH = 128
_READERS = 2
_PATIENCE_SECONDS = 5.0
_RETRY_SECONDS = 0.1


class Store:
    """Reads for one process and event loop, over a small pool."""

    def __init__(self, dsn: str) -> None:
        self.pool = AsyncConnectionPool(
            dsn, min_size=1, max_size=6, open=False, kwargs={"autocommit": True, "prepare_threshold": 0}
        )
        self._wanted: dict[str, asyncio.Future[TaskRecord | None]] = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._reading = 0  # readers that will look at `_wanted` again; one that has looked for the last time is none

    async def start(self) -> None:
        """Open the pool. Raises `psycopg_pool.PoolTimeout` when the database cannot be reached."""
        await self.pool.open(wait=True, timeout=10)

    async def stop(self) -> None:
        """Close the pool."""
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self.pool.close()

    async def load(self, task_id: str) -> TaskRecord | None:
        """The task with its history and artifacts, as committed now. Callers must not change it: it may be shared."""
        future = self._wanted.get(task_id)
        if future is None:
            future = self._wanted[task_id] = asyncio.get_running_loop().create_future()
            if self._reading < _READERS:
                self._reading += 1
                reader = asyncio.create_task(self._read_wanted())
                self._readers.add(reader)
                reader.add_done_callback(self._readers.discard)
        return await asyncio.shield(future)

    async def _read_wanted(self) -> None:
        try:
            while self._wanted:
                await self._read_batch()
        finally:
            self._reading -= 1

    async def _read_batch(self) -> None:
        batch = dict(list(self._wanted.items())[:_BATCH])
        for task_id in batch:
            del self._wanted[task_id]
        try:
            records = await self.load_many(list(batch))
        except Exception as error:
            for future in batch.values():
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # each waiter sees it through its shield; none may be left
            return
        for task_id, future in batch.items():
            if not future.done():
                future.set_result(records.get(task_id))

    async def load_many(
        self, ids: Sequence[str], *, history: bool = True, artifacts: bool = True
    ) -> dict[str, TaskRecord]:
        """Tasks by id, as of one moment; absent ones are left out."""
        rows = await self.query(_TASKS[history, artifacts], [list(ids)])
        return {row[0]: _full_record(row) for row in rows}

    async def events_after(self, cursors: Sequence[tuple[str, int]]) -> dict[str, list[Event]]:
        """Events of several tasks beyond a seq each, in order."""
        ids, seqs = [c[0] for c in cursors], [c[1] for c in cursors]
        rows = await self.query(_EVENTS_AFTER, [ids, seqs])
        found: dict[str, list[Event]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(_event(row))
        return found

    async def events_page(self, task_id: str, after: int, limit: int) -> list[Event]:
        """At most `limit` events of one task beyond `after`, in order."""
        return [_event(row) for row in await self.query(_EVENTS_PAGE, [task_id, after, limit])]

    async def statuses(self, task_id: str) -> list[Event]:
        """All status events of a task, in order."""
        return [_event(row) for row in await self.query(_STATUSES, [task_id])]

    async def receipt(self, agent_id: int, owner: str, message_id: str) -> tuple[str, str] | None:
        """(task id, digest) of a message that this caller sent before."""
        rows = await self.query(_RECEIPT, [agent_id, owner, message_id])
        return (rows[0][0], rows[0][1]) if rows else None

    async def query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows of one statement that may run twice. A broken connection is replaced; without a database for some
        seconds it raises UnavailableError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_SECONDS
        while True:
            try:
                async with self.pool.connection(timeout=_PATIENCE_SECONDS) as connection:
                    return await (await connection.execute(sql, parameters)).fetchall()
            except psycopg.OperationalError as error:
                if loop.time() > deadline:
                    raise UnavailableError(retry_after=5) from error
                await asyncio.sleep(_RETRY_SECONDS)


def task_record(row: tuple[Any, ...]) -> TaskRecord:
    """A record of a row of TASK_COLUMNS, without history and artifacts."""
    task_id, agent_id, owner, context_id, state, *rest = row
    return TaskRecord(task_id, agent_id, owner, context_id, TaskState.from_number(state), *rest)


def _full_record(row: tuple[Any, ...]) -> TaskRecord:
    *columns, history, artifacts = row
    record = task_record(tuple(columns))
    if history:
        record.history = history.split(_ENTRY)
    if artifacts:
        record.chunks = [_chunk(entry.split(_FIELD)) for entry in artifacts.split(_ENTRY)]
    return record


def _chunk(fields: list[str]) -> Event:
    seq, append, last_chunk, attempt, epoch, artifact_id, metadata, body = fields
    return Event(
        seq=int(seq),
        kind=EventKind.ARTIFACT,
        body=body,
        created_at=datetime.fromtimestamp(float(epoch), UTC),
        attempt=int(attempt),
        metadata=metadata or None,
        artifact_id=json.decode(artifact_id, type=str),
        append=append == "t",
        last_chunk=last_chunk == "t",
    )


def _event(row: tuple[Any, ...]) -> Event:
    _, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt, created_at = row
    state = _state_of(body) if kind == EventKind.STATUS else None
    return Event(seq, EventKind(kind), body, created_at, attempt, state, metadata, artifact_id, append, last_chunk)


def _state_of(status: str) -> TaskState:
    """The state in a stored TaskStatus, which the journal writes with `state` first."""
    start = len('{"state":"')
    return TaskState(status[start : status.index('"', start)])
