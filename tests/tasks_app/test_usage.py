"""The counters of calls: each call counts once, whatever happens between the process and the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agents.registry import AgentEntry
from protocol.timestamps import now
from tasks_app.tables import usage
from tasks_app.tables.usage import Key, Usage, count, counted
from tests.support.wire_cut import open_wire_cut
from tests.tasks_app.world import ALICE, BOB, PATIENCE, World, soon

_ROWS = "SELECT binding, version, operation, caller, calls, errors FROM agents_usage ORDER BY 1, 2, 3, 4, 5"
_WAITING = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'agents_usage'::regclass"


@asynccontextmanager
async def open_usage(dsn: str) -> AsyncIterator[Usage]:
    """Counters with a pool of their own, written by hand."""
    async with AsyncConnectionPool(dsn, min_size=1, max_size=1, open=False, kwargs={"autocommit": True}) as pool:
        yield Usage(pool)


def key(agent: AgentEntry, caller: str = ALICE, operation: str = "GetTask", dialect: str = "JSONRPC/1.0") -> Key:
    return Key(agent.id, dialect, operation, caller)


async def test_calls_are_counted_apart_and_added_up(world: World, agent: AgentEntry) -> None:
    other = await world.add_agent()
    async with open_usage(world.dsn) as one, open_usage(world.dsn) as two:
        for number in range(7):
            one.count(key(agent), failed=number == 3)
            two.count(key(agent), failed=number < 2)
        one.count(key(agent, BOB), failed=False)
        one.count(key(agent, operation="SendMessage"), failed=False)
        two.count(key(agent, dialect="HTTP+JSON/0.3"), failed=False)
        two.count(key(other), failed=True)
        await asyncio.gather(one.flush(), two.flush())
        one.count(key(agent, BOB), failed=True)
        await one.flush()
        await two.flush()
    assert await world.query(_ROWS) == [
        ("HTTP+JSON", "0.3", "GetTask", ALICE, 1, 0),
        ("JSONRPC", "1.0", "GetTask", ALICE, 1, 1),
        ("JSONRPC", "1.0", "GetTask", ALICE, 14, 3),
        ("JSONRPC", "1.0", "GetTask", BOB, 2, 1),
        ("JSONRPC", "1.0", "SendMessage", ALICE, 1, 0),
    ]


async def test_first_and_last_seen(world: World, agent: AgentEntry) -> None:
    before = now()
    async with open_usage(world.dsn) as counters:
        counters.count(key(agent), failed=False)
        await counters.flush()
        [(first, last)] = await world.query("SELECT first_seen, last_seen FROM agents_usage")
        assert before <= first == last <= now()
        await world.query("UPDATE agents_usage SET first_seen = first_seen - interval '1 day'")
        counters.count(key(agent), failed=False)
        await counters.flush()
    [(earlier, later)] = await world.query("SELECT first_seen, last_seen FROM agents_usage")
    assert earlier == first - timedelta(days=1)
    assert last <= later <= now()


async def test_the_counters_of_a_deleted_agent_hold_nobody_up(world: World, agent: AgentEntry) -> None:
    gone = await world.add_agent()
    async with open_usage(world.dsn) as counters:
        counters.count(key(gone), failed=False)
        counters.count(key(agent), failed=False)
        await world.query("DELETE FROM agents_skill WHERE agent_id = %s", [gone.id])
        await world.query("DELETE FROM agents_agent WHERE id = %s", [gone.id])
        await counters.flush()
        await counters.flush()
    assert await world.query("SELECT agent_id, calls FROM agents_usage") == [(agent.id, 1)]


@pytest.mark.parametrize("rollback", [False, True])
async def test_a_connection_that_breaks_while_it_commits_counts_once(
    world: World, agent: AgentEntry, rollback: bool
) -> None:
    async with open_wire_cut(world.dsn) as wire, open_usage(wire.dsn) as counters:
        counters.count(key(agent), failed=False)
        if rollback:
            async with lock_of(world):
                flush = asyncio.create_task(counters.flush())
                await a_row(world, _WAITING)
                wire.cut()
        else:
            wire.cut_next_reply()
            flush = asyncio.create_task(counters.flush())
        with pytest.raises(psycopg.OperationalError):
            await soon(flush)
        counters.count(key(agent), failed=True)
        await until_flushed(counters)
    assert await world.query("SELECT calls, errors FROM agents_usage") == [(2, 1)]


@asynccontextmanager
async def lock_of(world: World) -> AsyncIterator[None]:
    """Nobody writes counters inside."""
    async with await psycopg.AsyncConnection.connect(world.dsn) as connection:
        await connection.execute("LOCK TABLE agents_usage")
        yield
        await connection.rollback()


async def a_row(world: World, statement: str) -> None:
    """Return when the statement finds something."""
    async with asyncio.timeout(PATIENCE):
        while not await world.query(statement):
            pass


async def until_flushed(counters: Usage) -> None:
    """Try again as the timer does, until a broken connection was replaced."""
    while True:
        try:
            await counters.flush()
        except (psycopg.OperationalError, PoolTimeout):
            continue
        return


async def test_without_a_database_counters_wait_and_callers_stop_to_be_told_apart(
    world: World, agent: AgentEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "COUNTERS_MAX", 3)
    async with open_wire_cut(world.dsn) as wire, open_usage(wire.dsn) as counters:
        wire.close_gate()
        for number in range(6):
            counters.count(key(agent, f"caller {number}"), failed=False)
            counters.count(key(agent, "caller 0"), failed=True)
        with pytest.raises((psycopg.OperationalError, PoolTimeout)):
            await counters.flush()
        wire.open_gate()
        await until_flushed(counters)
    assert sorted(await world.query("SELECT caller, calls, errors FROM agents_usage")) == [
        ("(others)", 3, 0),
        ("caller 0", 7, 6),
        ("caller 1", 1, 0),
        ("caller 2", 1, 0),
    ]


async def test_a_host_writes_by_itself_and_when_it_stops(
    world: World, agent: AgentEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "FLUSH_SECONDS", 0.01)
    host = await world.start_host()
    call = world.call(agent, host=host)
    count(call, "GetTask", failed=False)

    await a_row(world, "SELECT calls FROM agents_usage WHERE calls = 1")
    monkeypatch.setattr(usage, "FLUSH_SECONDS", 3600)
    count(call, "GetTask", failed=True)
    await host.stop()
    world.hosts.remove(host)
    assert await world.query("SELECT calls, errors FROM agents_usage") == [(2, 1)]


async def test_what_fails_inside_counts_as_an_error_and_a_caller_who_hangs_up_does_not(
    world: World, agent: AgentEntry
) -> None:
    call = world.call(agent)
    with counted(call, "GetTask"):
        call.dialect = "JSONRPC/0.3"
    with pytest.raises(LookupError), counted(call, "GetTask"):
        raise LookupError
    with pytest.raises(asyncio.CancelledError), counted(call, "GetTask"):
        raise asyncio.CancelledError
    await world.hosts[0].usage.flush()
    assert await world.query(_ROWS) == [("JSONRPC", "0.3", "GetTask", ALICE, 3, 1)]
