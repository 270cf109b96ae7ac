"""Machines whose clocks are wrong by a minute: leases are made and judged by the clock of the database."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from agents.delegation import wait_for_answer
from agents.runtimes.base import Run, Updates
from protocol.states import TaskState
from protocol.timestamps import now
from tasks_app.execution.claiming import claim_task
from tasks_app.execution.sweeping import sweep
from tasks_app.journal.leases import LEASE, RING_AGAIN
from tasks_app.operations import send_message, start_task
from tests.tasks_app.checks import check_everything, events_of
from tests.tasks_app.world import World, beat, chunk, request, say, soon, until

LEFT = "SELECT extract(epoch FROM lease_until - now())::float8 FROM tasks_app_task WHERE id = %s"


@pytest.fixture(autouse=True, params=[-60, 60], ids=["behind", "ahead"])
def skew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The hosts' clock is so many seconds ahead of the database's."""
    seconds: int = request.param
    right = time.time_ns
    monkeypatch.setattr("protocol.timestamps.time", SimpleNamespace(time_ns=lambda: right() + seconds * 10**9))
    assert abs(now().timestamp() - time.time() - seconds) < 1
    return seconds


async def left(world: World, task_id: str) -> float:
    """How many seconds of its lease a task has left."""
    ((seconds,),) = await world.query(LEFT, [task_id])
    return float(seconds)


async def test_a_run_that_streams_keeps_its_lease(world: World) -> None:
    """Each write of the run extends it, as each heartbeat does, and nobody takes its process for dead."""
    go_on: asyncio.Queue[None] = asyncio.Queue()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        for number in range(3):
            await go_on.get()
            await updates.artifact(chunk(str(number)), append=True)
        await go_on.get()
        await updates.status(TaskState.COMPLETED)

    async def check(log: int) -> None:
        async with asyncio.timeout(10):
            while (await world.load(task_id)).last_seq < log:
                pass
        assert LEASE.total_seconds() - 2 < await left(world, task_id) <= LEASE.total_seconds()
        for _ in range(2):
            assert await soon(sweep(other)) == 0

    other = await world.start_host()
    entry = await world.add_agent(act)
    task_id = (await soon(start_task(world.call(entry), request()))).id
    await check(1)
    for log in (2, 3, 4):
        go_on.put_nowait(None)
        await check(log)
        await beat(world.hosts[0])
        await check(log)
    go_on.put_nowait(None)
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert [e[0] for e in await events_of(world, task_id)] == ["WORKING", *["result"] * 3, "COMPLETED"]
    await check_everything(world)


async def test_a_queued_task_is_called_for_again_in_time(world: World) -> None:
    entry = await world.add_agent(executor="hold", execution="worker")
    task_id = (await soon(start_task(world.call(entry), request()))).id
    assert RING_AGAIN.total_seconds() - 2 < await left(world, task_id) <= RING_AGAIN.total_seconds()
    worker = await world.start_host("worker")
    assert await soon(claim_task(worker, task_id, 1)) is not None
    assert await left(world, task_id) <= LEASE.total_seconds()


@pytest.mark.parametrize("alive", [True, False])
async def test_an_answer_goes_to_a_run_that_waits_if_its_process_lives(world: World, alive: bool) -> None:
    runs: list[int] = []

    async def act(run: Run, updates: Updates) -> None:
        runs.append(run.attempt)
        if run.task is None:
            await updates.status(TaskState.INPUT_REQUIRED, say("well?"))
            await wait_for_answer()
        await updates.status(TaskState.COMPLETED)

    other = await world.start_host()
    entry = await world.add_agent(act)
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    await until(lambda: world.hosts[0].executions[task_id]._waited, "the run to wait")
    if not alive:
        await world.query("UPDATE tasks_app_task SET lease_until = now() - interval '1 s'")
    answer = await soon(send_message(world.call(entry, host=other), request("x", task_id=task_id)))
    assert answer.record.state is TaskState.COMPLETED
    assert runs == ([1] if alive else [1, 2])
