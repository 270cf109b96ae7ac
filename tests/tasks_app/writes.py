"""A journal without a host around it, and the writes that tests give it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from protocol.ids import new_id
from protocol.states import TaskState
from protocol.timestamps import print_timestamp
from tasks_app.journal import Acceptance, Change, Creation, Journal
from tasks_app.journal.preparing import CHANNEL
from tasks_app.journal.writer import Write
from tasks_app.tables.record import Event, EventKind, HistoryEntry, initial_status
from tests.tasks_app.world import ALICE, PATIENCE

START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
WORKER = "web-test"
EAR = "web-ear"
_WISH = "INSERT INTO tasks_app_listening (origin, until) VALUES (%s, now() + interval '1 minute')"


class Desk:
    """A running journal and what it published, batch by batch."""

    def __init__(self, dsn: str, origin: str = WORKER) -> None:
        self.published: list[list[Write]] = []
        self.journal = Journal(dsn, origin, lambda writes: self.published.append(list(writes)))

    async def submit(self, *writes: Write) -> list[bool | BaseException]:
        """Hand in writes at one moment; their outcomes."""
        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*map(self.journal.submit, writes), return_exceptions=True)


@asynccontextmanager
async def open_desk(dsn: str, origin: str = WORKER) -> AsyncIterator[Desk]:
    """A desk that is open inside the block."""
    desk = Desk(dsn, origin)
    await desk.journal.start()
    try:
        yield desk
    finally:
        await asyncio.wait_for(desk.journal.stop(), PATIENCE)


def creation(agent_id: int, message_id: str = "", *, digest: str = "same", **fields: Any) -> Creation:
    """A new task of ALICE; with a `message_id`, one that must not come twice."""
    task_id = new_id()
    acceptance = Acceptance(agent_id, ALICE, message_id, digest) if message_id else None
    values = {
        "task_id": task_id,
        "agent_id": agent_id,
        "owner": ALICE,
        "context_id": f"context-of-{task_id}",
        "status": initial_status(START),
        "created_at": START,
        "message": entry(1, message_id or f"first-of-{task_id}", role=1),
        "dialect": "JSONRPC/1.0",
        "request": "{}",
        "worker": WORKER,
        "acceptance": acceptance,
        "done": asyncio.get_running_loop().create_future(),
    }
    return Creation(**(values | fields))


def change(
    task_id: str,
    version: int,
    state: TaskState = TaskState.WORKING,
    *,
    seqs: Sequence[int] | None = None,
    messages: Sequence[HistoryEntry] = (),
    at: datetime | None = None,
    **fields: Any,
) -> Change:
    """The write that makes `version` + 1 of a task. Unless `seqs` says otherwise it has one event, number `version`.
    The task was SUBMITTED at version 1, and WORKING since if `old_state` says nothing else.
    """
    numbers = [version] if seqs is None else list(seqs)
    at = at or START + timedelta(seconds=version)
    text = status(state, at)
    values = {
        "task_id": task_id,
        "version": version,
        "attempt": 1,
        "old_state": TaskState.SUBMITTED if version == 1 else TaskState.WORKING,
        "state": state,
        "status": text,
        "status_at": at,
        "metadata": None,
        "last_seq": max(numbers, default=version - 1),
        "message_count": 1 + len(messages),
        "new_attempt": fields.get("attempt", 1),
        "worker": WORKER,
        "done": asyncio.get_running_loop().create_future(),
        "events": [Event(n, EventKind.STATUS, text, at, 1, state) for n in numbers],
        "messages": list(messages),
    }
    return Change(**(values | fields))


def status(state: TaskState, at: datetime) -> str:
    """A TaskStatus as the journal is given it."""
    return f'{{"state":"{state}","timestamp":"{print_timestamp(at)}"}}'


def entry(position: int, message_id: str, role: int = 2, body: str = "") -> HistoryEntry:
    """One message of a history."""
    body = body or f'{{"messageId":"{message_id}","role":"ROLE_USER","parts":[{{"text":"hi"}}]}}'
    return HistoryEntry(position, message_id, role, body, "hi", START)


class Ear:
    """A connection that listens to the journal's channel."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection

    async def hear(self, news: int) -> list[str]:
        """The payloads of at least `news` items (`<task id>:<seq>`), as many as were sent."""
        payloads: list[str] = []
        async for notification in self._connection.notifies(timeout=PATIENCE):
            payloads.append(notification.payload)
            if sum(p.count(":") for p in payloads) >= news:
                return payloads
        raise AssertionError(f"heard only {payloads}")


@asynccontextmanager
async def open_ear(dsn: str) -> AsyncIterator[Ear]:
    """An ear that hears what is committed inside the block, as a process with streams of its own."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(f"LISTEN {CHANNEL}".encode())
        await connection.execute(_WISH, [EAR])
        try:
            yield Ear(connection)
        finally:
            await connection.execute("DELETE FROM tasks_app_listening WHERE origin = %s", [EAR])
