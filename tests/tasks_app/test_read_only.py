"""A database that may be read only, as a standby or a server without room: whose run lives is left alone, and callers
are told to try again."""

from __future__ import annotations

import asyncio

import pytest

from agents.runtimes.base import Run, Updates
from protocol.states import TaskState
from tasks_app.execution.host import Host
from tasks_app.execution.sweeping import sweep
from tasks_app.operations import send_message
from tests.tasks_app.test_upkeep import EXPIRE, wait_for_state
from tests.tasks_app.world import World, beat, request, soon, until


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.tables.store.PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr("tasks_app.tables.loader.PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr("tasks_app.execution.heartbeat.INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr("tasks_app.execution.heartbeat.BLIND_SECONDS", 0.5)


async def test_a_living_run_outlives_a_read_only_server(world: World) -> None:
    """Nobody could extend its lease meanwhile. The other process, which has no runs, knows it by its own heartbeat, and
    leaves it its time afterwards."""
    done = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await done.wait()
        await updates.status(TaskState.COMPLETED)

    other = await world.start_host()
    answer = await soon(send_message(world.call(await world.add_agent(act)), request(immediately=True)))
    task_id = answer.record.id
    await wait_for_state(world, task_id, TaskState.WORKING)
    execution = world.hosts[0].executions[task_id]
    other.heartbeat.start()
    await until(lambda: not other.heartbeat.unheard, "the first beat")
    async with world.read_only(all_sessions=True):
        await until(lambda: other.heartbeat.unheard, "the beats to fail")
        await world.query(EXPIRE)
        before = await world.dump()
        looks = [asyncio.create_task(look_twice(other)) for _ in range(2)]
        await asyncio.wait(looks, timeout=1)
        assert await world.dump() == before
    await until(lambda: not other.heartbeat.unheard, "the server to take beats again")
    await soon(asyncio.gather(*looks, look_twice(other)))
    assert await world.dump() == before
    await beat(world.hosts[0])
    done.set()
    await soon(execution.settled())
    assert not execution.fenced
    assert (await world.load(task_id)).state is TaskState.COMPLETED


async def look_twice(host: Host) -> None:
    """What is overdue in two looks has lost its process."""
    for _ in range(2):
        await sweep(host)
