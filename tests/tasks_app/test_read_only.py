"""A database that may be read only, as a standby or a server without room: whose run lives is left alone, and callers
are told to try again."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest

from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.errors import UnavailableError
from protocol.model import TaskPushNotificationConfig
from protocol.requests import CancelTaskRequest
from protocol.states import TaskState
from tasks_app import operations
from tasks_app.execution.host import Host
from tasks_app.execution.sweeping import sweep
from tasks_app.journal import leases
from tasks_app.operations import send_message
from tests.tasks_app.test_upkeep import EXPIRE, hold, wait_for_state
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


async def test_what_calls_write_besides_tasks_is_unavailable(world: World) -> None:
    """A cancel of a run in another process, a webhook, and what processes do for tasks by themselves."""
    other = await world.start_host()
    entry, task_id = await held(world, world.hosts[0], push_notifications=True)
    before = await world.dump()
    call, cancel = world.call(entry, host=other), CancelTaskRequest(id=task_id)
    given = TaskPushNotificationConfig(task_id=task_id, id="c", url="https://93.184.216.34/")
    async with world.read_only(all_sessions=True):
        for refused in (
            operations.cancel_task(call, cancel),
            operations.create_push_config(call, given),
            leases.requeue(other.store, [(task_id, 1)], given_up=True),
        ):
            with pytest.raises(UnavailableError):
                await soon(refused)
        assert await world.dump() == before
    assert (await soon(operations.create_push_config(call, given))).url == "https://93.184.216.34/"
    assert (await soon(operations.cancel_task(call, cancel))).state is TaskState.CANCELED


@pytest.mark.parametrize("error", [None, KeyError("a mistake")], ids=["read-only", "a mistake"])
async def test_stopping_goes_on_where_runs_cannot_be_handed_back(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """They are missed in time, like those of a process that died. The rest of the stopping is done."""
    host = await world.start_host()
    _, task_id = await held(world, host, max_retries=1)
    if error is not None:
        monkeypatch.setattr(host.behaviours, "hand_back", AsyncMock(side_effect=error))
    async with world.read_only(all_sessions=True):
        await soon(host.end_runs())
        assert not host.executions
        assert host.hub.ended
    record = await world.load(task_id)
    assert (record.state, record.attempt, record.worker) == (TaskState.WORKING, 1, host.origin)


async def held(world: World, host: Host, **fields: Any) -> tuple[AgentEntry, str]:
    """A task that runs at a host until it is stopped."""
    entry = await world.add_agent(hold, **fields)
    answer = await soon(send_message(world.call(entry, host=host), request(immediately=True)))
    await wait_for_state(world, answer.record.id, TaskState.WORKING)
    return entry, answer.record.id


async def look_twice(host: Host) -> None:
    """What is overdue in two looks has lost its process."""
    for _ in range(2):
        await sweep(host)
