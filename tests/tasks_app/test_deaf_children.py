"""Children that do not listen to the cancel that comes with the end of their parent: nobody waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio

from agents.runtimes.base import Run, Updates
from protocol.states import TaskState
from tasks_app.execution import cancelling, cascade, upkeep
from tasks_app.execution.cancelling import cancel_record
from tasks_app.execution.cascade import cancel_orphans
from tasks_app.execution.host import Host
from tasks_app.execution.missed import hear_missed
from tasks_app.execution.sweeping import sweep
from tasks_app.tables.record import TaskRecord
from tests.tasks_app.test_delegation import child_of, known, relay, start, wait_for
from tests.tasks_app.world import PATIENCE, World, until
from tests.tasks_app.writes import creation, open_desk

FAIL = """UPDATE tasks_app_task SET state = 4, attempt = attempt + 1, version = version + 1, worker = NULL,
    lease_until = NULL, status = '{"state":"TASK_STATE_FAILED"}' WHERE id = %s"""
EXPIRE = "UPDATE tasks_app_task SET lease_until = now() - interval '10 seconds' WHERE id = %s"
ASKED = "SELECT id FROM tasks_app_task WHERE cancel_requested_at IS NOT NULL ORDER BY id"


@pytest_asyncio.fixture
async def deaf_child(world: World) -> AsyncIterator[str]:
    """The running child of a task that has FAILED in a process that died before it told anybody. Nothing stops its code
    before the end of the test, and it has a minute of grace."""
    over = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()

    leaf = await world.add_agent(act, cancel_grace_seconds=60)
    known(world, leaf)
    parent = await start(world, await world.add_agent(relay(leaf.slug)))
    child = await child_of(world, parent)
    await world.query(FAIL, [parent])
    yield child
    over.set()
    await until(lambda: child not in world.hosts[0].executions, "its code to end")


async def test_a_lost_run_is_found_while_a_deaf_child_is_cancelled(
    world: World, deaf_child: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancels: list[str] = []

    async def cancel(host: Host, record: TaskRecord) -> TaskRecord:
        cancels.append(record.id)
        return await cancel_record(host, record)

    monkeypatch.setattr(upkeep, "INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(cascade, "cancel_record", cancel)
    host = world.hosts[0]
    looking = asyncio.create_task(upkeep.keep_up(host, hear_missed, sweep, cancel_orphans))
    try:
        await until(lambda: host.executions[deaf_child].cancelling, "the cancel to reach the child")
        agent = await world.add_agent()
        async with open_desk(world.dsn) as desk:
            for _ in range(3):
                lost = creation(agent.id, worker="web-gone")
                await desk.submit(lost)
                await world.query(EXPIRE, [lost.task_id])
                await wait_for(world, lost.task_id, TaskState.FAILED)
    finally:
        looking.cancel()
    assert (await world.load(deaf_child)).state is TaskState.WORKING
    assert cancels == [deaf_child], "once, however often anybody looked"


async def test_a_look_begins_with_those_that_are_not_under_way(
    world: World, deaf_child: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as one look takes may be deaf."""
    monkeypatch.setattr(cascade, "_ORPHANS", cascade._ORPHANS.replace("LIMIT 200", "LIMIT 1"))
    host = world.hosts[0]
    await cancel_orphans(host)
    await until(lambda: host.executions[deaf_child].cancelling, "the cancel to reach the child")
    agent = await world.add_agent()
    async with open_desk(world.dsn) as desk:
        ((parent,),) = await world.query("SELECT parent_id FROM tasks_app_task WHERE id = %s", [deaf_child])
        other = creation(agent.id, parent_id=parent, worker=None)
        await desk.submit(other)
    await cancel_orphans(host)
    await wait_for(world, other.task_id, TaskState.CANCELED)


async def orphans(world: World, number: int) -> list[str]:
    """So many children of a task that has FAILED, at work in a process that hears nothing, with a minute of grace."""
    agent = await world.add_agent(cancel_grace_seconds=60)
    async with open_desk(world.dsn) as desk:
        parent = creation(agent.id)
        found = [creation(agent.id, parent_id=parent.task_id, worker="web-deaf") for _ in range(number)]
        await desk.submit(parent, *found)
    await world.query(FAIL, [parent.task_id])
    return sorted(child.task_id for child in found)


async def asked(world: World) -> list[str]:
    """The tasks whose process was asked to cancel them."""
    return [row[0] for row in await world.query(ASKED)]


async def wait_for_asked(world: World, ids: list[str]) -> None:
    async with asyncio.timeout(PATIENCE):
        while await asked(world) != ids:  # noqa: ASYNC110 the database says so
            await asyncio.sleep(0.01)


async def test_the_cancels_of_many_leave_connections_to_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often they ask, and look whether anything has come of it."""
    monkeypatch.setattr(cancelling, "_ASK_AGAIN_SECONDS", 0.05)
    host = world.hosts[0]
    children = await orphans(world, 150)
    query, open_now, most, asks = host.store.query, 0, 0, 0

    async def counted(sql: str, parameters: Any) -> list[tuple[Any, ...]]:
        nonlocal open_now, most, asks
        open_now += 1
        most, asks = max(most, open_now), asks + ("pg_notify" in sql)
        try:
            return await query(sql, parameters)
        finally:
            open_now -= 1

    monkeypatch.setattr(host.store, "query", counted)
    await cancel_orphans(host)
    await wait_for_asked(world, children)
    before = asks
    await until(lambda: asks > before + 10, "them to be asked again")
    assert most <= 3, "one for what is asked, one for how they are, one for what they say"


async def test_a_process_cancels_so_many_at_a_time_and_finds_the_others_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade, "_UNDER_WAY", 2)
    monkeypatch.setattr(cancelling, "_ASK_AGAIN_SECONDS", 0.05)
    host = world.hosts[0]
    one, two, three = await orphans(world, 3)
    for _ in range(2):
        await cancel_orphans(host)
        await wait_for_asked(world, [one, two])
    await world.query(FAIL, [two])
    await until(lambda: len(host._background) == 1, "the end of its cancel")
    assert await asked(world) == [one, two]
    await cancel_orphans(host)
    await wait_for_asked(world, [one, two, three])
