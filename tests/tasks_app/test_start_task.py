"""A task that is begun without waiting for its agent, what it begins with, and when it will probably be done."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from msgspec import Raw

from agents.runtimes.base import Run, Updates
from protocol.states import TaskState
from tasks_app.execution.claiming import claim_task
from tasks_app.operations import estimating as estimating_module
from tasks_app.operations import send_message, start_task
from tasks_app.operations.estimating import usual_duration
from tests.tasks_app.checks import check_everything
from tests.tasks_app.world import World, complete, request, say, soon, until


async def test_the_answer_is_the_task_as_it_was_committed(world: World) -> None:
    entry = await world.add_agent(complete)
    record = await soon(start_task(world.call(entry), request(), '{"priority":"high"}'))
    assert (record.state, record.last_seq, record.metadata) == (TaskState.SUBMITTED, 0, '{"priority":"high"}')
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert record.state is TaskState.SUBMITTED
    stored = await world.load(record.id)
    assert (stored.state, stored.metadata) == (TaskState.COMPLETED, '{"priority":"high"}')
    await check_everything(world)


async def test_metadata_is_stored_with_the_task_and_the_agent_adds_to_it(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        ((stored,),) = await world.query("SELECT metadata FROM tasks_app_task")
        assert stored == '{"priority":"high","n":1.0}'
        await updates.status(TaskState.COMPLETED, metadata=Raw(b'{"progress":1}'))

    entry = await world.add_agent(act)
    record = await soon(start_task(world.call(entry), request(), '{"priority":"high","n":1.0}'))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    metadata = (await world.load(record.id)).metadata
    assert metadata is not None
    assert json.loads(metadata) == {"priority": "high", "n": 1.0, "progress": 1}


async def test_metadata_reaches_a_worker(world: World) -> None:
    entry = await world.add_agent(execution="worker")
    worker = await world.start_host("worker")
    record = await soon(start_task(world.call(entry), request(), '{"priority":"high"}'))
    execution = await soon(claim_task(worker, record.id, 1))
    assert execution is not None
    await soon(execution.settled())
    stored = await world.load(record.id)
    assert (stored.state, stored.metadata) == (TaskState.COMPLETED, '{"priority":"high"}')


async def test_a_message_as_the_answer_completes_the_task(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.reply(say("hello"))

    entry = await world.add_agent(act)
    record = await soon(start_task(world.call(entry), request()))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    stored = await world.load(record.id)
    assert (stored.state, "hello" in stored.status) == (TaskState.COMPLETED, True)


async def test_the_usual_duration_is_the_median_of_what_the_agent_completed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, other = await world.add_agent(complete), await world.add_agent(complete)
    call = world.call(entry)
    assert await soon(usual_duration(call)) is None
    for _ in range(3):
        await soon(send_message(call, request()))
    await soon(send_message(world.call(other, "bob"), request()))
    await set_durations(world, [1, 20, 300])
    assert await soon(usual_duration(call)) == timedelta(seconds=20)
    assert await soon(usual_duration(world.call(other))) == timedelta(seconds=1)
    # From memory, until it is old; then the old one is the answer for as long as the new one is being read.
    await set_durations(world, [1, 40, 300])
    assert await soon(usual_duration(call)) == timedelta(seconds=20)
    monkeypatch.setattr(estimating_module, "REFRESH_SECONDS", -1.0)
    assert await soon(usual_duration(call)) == timedelta(seconds=20)
    known = estimating_module._known[call.host]
    await until(lambda: known[entry.id].duration == timedelta(seconds=40), "the new duration")
    assert await soon(usual_duration(call)) == timedelta(seconds=40)


async def set_durations(world: World, seconds: list[int]) -> None:
    """Make each agent's tasks, in the order of their creation, have taken so long."""
    await world.query(
        """UPDATE tasks_app_task t SET status_at = created_at + make_interval(secs => (%s::int[])[n.number])
        FROM (SELECT id, row_number() OVER (PARTITION BY agent_id ORDER BY id)::int AS number FROM tasks_app_task) n
        WHERE n.id = t.id""",
        [seconds],
    )
