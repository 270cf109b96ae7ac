"""The connection that deletes: it never waits long for a lock, and does nothing while a backup is made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tasks_app.tables.database import database_dsn
from tasks_app.tables.store import Store

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

CLEANING = 0xA2A406
"""For pg_advisory_lock: held by the one process that applies retention."""
BACKUP = 0xA2A407
"""Held exclusively while a backup is made, shared by whoever removes tasks and their files."""
_OPTIONS = "-c lock_timeout=2s -c statement_timeout=60s"


@asynccontextmanager
async def deleting_connection() -> AsyncIterator[Connection]:
    """In autocommit mode, so that each statement is a transaction. Raises psycopg.OperationalError."""
    dsn = database_dsn()
    options = f"{conninfo_to_dict(dsn).get('options', '')} {_OPTIONS}"
    dsn = make_conninfo(dsn, options=options, application_name="a2a-host retention")
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def held(connection: Connection, lock: int, shared: bool = False) -> AsyncIterator[bool]:
    """Whether an advisory lock was to be had at once; it is held inside the block."""
    kind = "_shared" if shared else ""
    cursor = await connection.execute(f"SELECT pg_try_advisory_lock{kind}(%s)".encode(), [lock])
    row = await cursor.fetchone()
    got = row is not None and bool(row[0])
    try:
        yield got
    finally:
        if got and not connection.closed:
            await connection.execute(f"SELECT pg_advisory_unlock{kind}(%s)".encode(), [lock])


@asynccontextmanager
async def opened_store() -> AsyncIterator[Store]:
    """A store for a process without a host, such as a command. Raises `psycopg_pool.PoolTimeout`."""
    store = Store(database_dsn())
    try:
        await store.start()
        yield store
    finally:
        await store.stop()
