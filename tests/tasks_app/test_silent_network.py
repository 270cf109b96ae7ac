"""A network that swallows every packet, with the timeouts of a host: nothing waits for a reset that never comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from django.db import connections
from psycopg.conninfo import conninfo_to_dict

from agents.registry import AgentEntry
from protocol.errors import UnavailableError
from tasks_app.live.listener import Listener
from tasks_app.tables.store import Store
from tests.support.wire_cut import WireCut, open_wire_cut
from tests.tasks_app.world import World, soon, until
from tests.tasks_app.writes import change, creation, open_desk

NOTICED = 10.0  # seconds that docs/guarantees.md names
PATIENCE = 5.0  # of calls, beyond that
TOLD = NOTICED + PATIENCE  # when calls hear of it at the latest


@pytest_asyncio.fixture
async def wire(world: World) -> AsyncIterator[WireCut]:
    async with open_wire_cut(world.dsn) as wire:
        yield wire


async def took(work: Any) -> float:
    """Seconds until something ends, whatever comes of it."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    await asyncio.gather(work, return_exceptions=True)
    return loop.time() - start


async def test_a_change_that_was_on_its_way_is_stored_once(world: World, wire: WireCut, agent: AgentEntry) -> None:
    """New tasks are refused after the journal's patience, whether it knows already or not; the change waits."""
    async with open_desk(wire.dsn) as desk:
        old = creation(agent.id)
        await desk.submit(old)
        loop = asyncio.get_running_loop()
        await wire.fall_silent()
        silent_at = loop.time()
        update = desk.journal.submit(change(old.task_id, 1))
        await until(lambda: not desk.journal._waiting, "the statement")
        first = desk.journal.submit(creation(agent.id))
        assert PATIENCE <= await took(first) < TOLD
        with pytest.raises(UnavailableError):
            first.result()
        second = asyncio.gather(desk.journal.submit(creation(agent.id)), return_exceptions=True)
        await until(lambda: desk.journal._trouble, "the journal to notice")
        assert loop.time() - silent_at < NOTICED
        (refused,) = await soon(second)
        assert isinstance(refused, UnavailableError)
        assert not update.done()
        assert await world.query("SELECT id, version FROM tasks_app_task") == [(old.task_id, 1)]
        wire.be_heard()
        assert await soon(update) is True
        assert await world.query("SELECT id, version FROM tasks_app_task") == [(old.task_id, 2)]
        assert [w.task_id for batch in desk.published for w in batch] == [old.task_id] * 2


async def test_readers_and_listeners_notice(world: World, wire: WireCut, agent: AgentEntry) -> None:
    """A read is UNAVAILABLE, the idle listening connection is made anew, and what was missed is caught up with."""
    caught_up = 0
    store, heard = Store(wire.dsn), list[str]()

    async def catch_up() -> None:
        nonlocal caught_up
        caught_up += 1

    listener = Listener(wire.dsn, catch_up)
    listener.on("a2a_test", heard.append)
    await soon(store.start())
    await soon(listener.start())
    try:
        assert await soon(store.load("none")) is None
        await wire.fall_silent()
        work = [store.load("none"), store.query("SELECT 1", [])]
        times = await asyncio.wait_for(asyncio.gather(*map(took, work)), 2 * NOTICED)
        assert max(times) < TOLD
        for read in (store.load("none"), store.query("SELECT 1", [])):
            with pytest.raises(UnavailableError):
                await asyncio.wait_for(read, TOLD)
        assert caught_up == 1
        wire.be_heard()
        await until(lambda: caught_up == 2, "the new listening connection")
        await world.query("SELECT pg_notify('a2a_test', 'hello')")
        await until(lambda: heard, "the notification")
        assert await soon(store.query("SELECT 1", [])) == [(1,)]
        assert await soon(store.load("none")) is None
    finally:
        wire.be_heard()
        await soon(listener.stop())
        await soon(store.stop())


async def test_a_network_that_is_back_in_time_is_not_noticed(world: World, wire: WireCut, agent: AgentEntry) -> None:
    async with open_desk(wire.dsn) as desk:
        new = creation(agent.id)
        await wire.fall_silent()
        stored = asyncio.create_task(desk.submit(new))
        await until(lambda: new not in desk.journal._waiting, "the statement")
        wire.be_heard()
        assert await soon(stored) == [True]
        assert desk.journal._trouble is None


def test_connections_that_django_makes_have_the_same_timeouts(world: World) -> None:
    names = ("connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    given = connections["default"].get_connection_params()
    said = conninfo_to_dict(world.dsn)
    assert {name: int(said[name]) for name in names} == {name: given[name] for name in names}
