"""Leases, the sweep and the doorbell: no task stays unfinished for ever, and nobody's living run is taken from them."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from django.db import OperationalError as DjangoOperationalError

from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.errors import InternalError
from protocol.states import TaskState
from tasks_app.execution import upkeep
from tasks_app.execution.claiming import claim_task
from tasks_app.execution.host import Host
from tasks_app.execution.sweeping import sweep
from tasks_app.execution.upkeep import end_task
from tasks_app.journal import leases
from tasks_app.live.listener import Listener
from tasks_app.operations import send_message
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import World, beat, chunk, request, say, soon, until
from tests.tasks_app.writes import change, creation, open_desk

ABANDONED = "The process that ran this task stopped, so its result is unknown."
EXPIRE = "UPDATE tasks_app_task SET lease_until = now() - interval '10 seconds'"


async def hold(run: Run, updates: Updates) -> None:
    """Work until stopped."""
    await updates.status(TaskState.WORKING)
    await asyncio.Event().wait()


async def sweep_twice(host: Host) -> int:
    """What is overdue in two sweeps has lost its process. Returns what the second one looked at."""
    await soon(sweep(host))
    found: int = await soon(sweep(host))
    return found


async def running(world: World, host: Host | None = None) -> tuple[AgentEntry, str]:
    """A task that runs at a host."""
    entry = await world.add_agent(hold)
    answer = await soon(send_message(world.call(entry, host=host), request(immediately=True)))
    await wait_for_state(world, answer.record.id, TaskState.WORKING)
    return entry, answer.record.id


async def wait_for_state(world: World, task_id: str, state: TaskState) -> None:
    async with asyncio.timeout(10):
        while (await world.load(task_id)).state is not state:
            pass


async def test_a_living_run_keeps_its_lease(world: World) -> None:
    _, task_id = await running(world)
    before = await world.load(task_id)
    await world.query(EXPIRE)
    await beat(world.hosts[0])
    after = await world.load(task_id)
    assert (after.version, after.attempt, after.worker) == (before.version, before.attempt, world.hosts[0].origin)
    (left,) = await world.query("SELECT extract(epoch FROM lease_until - now()) FROM tasks_app_task")
    assert 6 < float(left[0]) <= leases.LEASE.total_seconds()


async def test_ones_own_runs_are_not_swept(world: World) -> None:
    _, task_id = await running(world)
    await world.query(EXPIRE)
    before = await world.dump()
    assert await sweep_twice(world.hosts[0]) == 0
    assert await world.dump() == before
    assert task_id in world.hosts[0].executions


async def test_a_lease_that_is_not_over_is_not_swept(world: World) -> None:
    other = await world.start_host()
    await running(world)
    before = await world.dump()
    assert await sweep_twice(other) == 0
    assert await world.dump() == before


@pytest.mark.parametrize("state", [TaskState.SUBMITTED, TaskState.WORKING])
async def test_a_task_whose_process_is_gone_failed(world: World, state: TaskState) -> None:
    """With what it had done so far, and a reason."""
    agent = await world.add_agent()
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id, worker="web-gone")
        await desk.submit(new)
        if state is TaskState.WORKING:
            await desk.submit(change(new.task_id, 1, worker="web-gone"))
    await world.query(EXPIRE)
    assert await sweep_twice(world.hosts[0]) == 1
    record = await world.load(new.task_id)
    assert (record.state, said(record.status)) == (TaskState.FAILED, ABANDONED)
    assert (record.attempt, record.worker) == (2, None)
    assert await world.query("SELECT lease_until FROM tasks_app_task") == [(None,)]
    runs = await world.query("SELECT attempt, worker, state, fenced, started_at IS NOT NULL FROM tasks_app_execution")
    assert runs == [(1, "web-gone", state.number, True, True)]
    assert await soon(sweep(world.hosts[0])) == 0
    await check_everything(world)


@pytest.mark.parametrize(
    "state", [s for s in TaskState if s not in (TaskState.SUBMITTED, TaskState.WORKING)], ids=lambda s: s.name
)
async def test_what_does_not_run_is_not_swept(world: World, state: TaskState) -> None:
    agent = await world.add_agent()
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id)
        await desk.submit(new)
        await desk.submit(change(new.task_id, 1, state))
    await world.query(EXPIRE)
    before = await world.dump()
    assert await sweep_twice(world.hosts[0]) == 0
    assert await world.dump() == before


async def test_two_sweeps_at_once_end_a_task_once(world: World) -> None:
    other = await world.start_host()
    agent = await world.add_agent()
    async with open_desk(world.dsn) as desk:
        tasks = [creation(agent.id, worker="web-gone") for _ in range(60)]
        await desk.submit(*tasks)
    await world.query(EXPIRE)
    await asyncio.gather(sweep_twice(world.hosts[0]), sweep_twice(other))
    for task in tasks:
        assert await events_of(world, task.task_id) == [("FAILED",)]
    await check_everything(world)


async def test_an_outage_of_the_database_costs_no_living_run(world: World) -> None:
    """Afterwards all leases are over, and whoever looks first finds those of others too. They come in time."""
    other = await world.start_host()
    _, task_id = await running(world)
    await world.query(EXPIRE)
    assert await soon(sweep(other)) == 1
    await beat(world.hosts[0])
    assert await soon(sweep(other)) == 0
    await world.query(EXPIRE)
    assert await soon(sweep(other)) == 1, "the next outage is another one"
    assert (await world.load(task_id)).state is TaskState.WORKING
    assert task_id in world.hosts[0].executions


async def test_a_run_whose_task_was_given_away_is_stopped(world: World) -> None:
    """A process that slept through its lease: the task is FAILED, and its code is told by the next heartbeat."""
    other = await world.start_host()
    _, task_id = await running(world)
    await world.query(EXPIRE)
    assert await sweep_twice(other) == 1
    execution = world.hosts[0].executions[task_id]
    await beat(world.hosts[0])
    assert execution.fenced
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await events_of(world, task_id) == [("WORKING",), ("FAILED",)]
    await check_everything(world)


async def test_a_zombies_updates_change_nothing(world: World) -> None:
    """It writes under its old attempt before any heartbeat."""
    go_on = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await go_on.wait()
        await updates.artifact(chunk("from the grave"))
        await updates.status(TaskState.COMPLETED, say("done"))

    other = await world.start_host()
    entry = await world.add_agent(act)
    sending = asyncio.create_task(send_message(world.call(entry), request()))
    await until(lambda: world.hosts[0].executions, "the run to start")
    (task_id,) = world.hosts[0].executions
    await wait_for_state(world, task_id, TaskState.WORKING)
    await world.query(EXPIRE)
    await sweep_twice(other)
    before = await world.dump()
    go_on.set()
    answer = await soon(sending)
    assert (answer.record.state, said(answer.record.status)) == (TaskState.FAILED, ABANDONED), "the caller is told"
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await world.dump() == before


async def test_a_queued_task_is_rung_for_again_and_not_failed(world: World) -> None:
    rings: list[tuple[str, int]] = []
    other = await world.start_host()
    for host in (world.hosts[0], other):
        host.doorbell.ring = lambda *ring: rings.append(ring)  # type: ignore[method-assign]
    entry = await world.add_agent(executor="echo", execution="worker")
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    task_id = answer.record.id
    assert rings == [(task_id, 1)]
    await world.query(EXPIRE)
    await soon(asyncio.gather(sweep(world.hosts[0]), sweep(other)))
    assert rings == [(task_id, 1)] * 2, "one of the two rings"
    record = await world.load(task_id)
    assert (record.state, record.version, record.attempt) == (TaskState.SUBMITTED, 1, 1)
    await soon(sweep(world.hosts[0]))
    assert len(rings) == 2, "not before it is due again"
    worker = await world.start_host("worker")
    assert await soon(claim_task(worker, *rings[-1])) is not None
    await wait_for_state(world, task_id, TaskState.COMPLETED)
    await check_everything(world)


async def test_a_task_of_an_agent_that_is_gone_from_the_registry_is_not_claimed(world: World) -> None:
    worker = await world.start_host("worker")
    entry = await world.add_agent(executor="echo", execution="worker")
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    await world.query("UPDATE agents_agent SET enabled = false")
    await worker.registry.load()
    assert await soon(claim_task(worker, answer.record.id, 1)) is not None, "what was accepted is finished"
    await wait_for_state(world, answer.record.id, TaskState.COMPLETED)
    assert await soon(claim_task(worker, answer.record.id, 1)) is None
    assert await soon(claim_task(worker, "absent", 1)) is None


async def test_ending_a_task_that_moved_on_changes_nothing(world: World) -> None:
    agent = await world.add_agent()
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id)
        await desk.submit(new)
        old = await world.load(new.task_id)
        await desk.submit(change(new.task_id, 1, TaskState.COMPLETED))
    before = await world.dump()
    assert await soon(end_task(world.hosts[0], old, TaskState.CANCELED)) is False
    assert await world.dump() == before


async def test_upkeep_survives_what_goes_wrong(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bad turn must not be the last: without heartbeats every run of the process would be taken for dead."""
    monkeypatch.setattr(upkeep, "INTERVAL_SECONDS", 0.01)
    errors: list[Exception] = [psycopg.OperationalError("gone"), InternalError(), DjangoOperationalError(), KeyError()]
    turns = 0

    async def job(host: Host) -> None:
        nonlocal turns
        turns += 1
        if errors:
            raise errors.pop(0)

    task = asyncio.create_task(upkeep.keep_up(world.hosts[0], job))
    await until(lambda: turns >= 6 or task.done(), "more turns")
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_listener_survives_what_goes_wrong_while_it_catches_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catching up asks the database through the ORM, whose errors are of another kind."""
    monkeypatch.setattr("tasks_app.live.listener._RETRY_SECONDS", 0.01)
    errors: list[Exception] = [DjangoOperationalError("gone"), psycopg.OperationalError("gone"), InternalError()]

    async def caught_up() -> None:
        if errors:
            raise errors.pop(0)

    heard: list[str] = []
    listener = Listener(world.dsn, caught_up)
    listener.on("a2a_test", heard.append)
    await soon(listener.start())
    await world.query("SELECT pg_notify('a2a_test', 'hello')")
    await until(lambda: heard, "the notification")
    await soon(listener.stop())
    assert heard == ["hello"]


async def test_the_listener_survives_a_handler_that_stumbles(world: World) -> None:
    heard: list[str] = []

    def handle(payload: str) -> None:
        if payload == "bad":
            raise ValueError(payload)
        heard.append(payload)

    async def caught_up() -> None:
        return

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    listener = Listener(world.dsn, caught_up)
    listener.on("a2a_test", handle)
    await soon(listener.start())
    await world.query("SELECT pg_notify('a2a_test', 'bad'), pg_notify('a2a_test', 'good')")
    await until(lambda: heard, "the good notification")
    await soon(listener.stop())
    assert heard == ["good"]


async def test_the_listener_comes_back_and_catches_up(world: World) -> None:
    """Its backend is terminated: what was announced meanwhile is looked for."""
    _, task_id = await running(world)
    other = await world.start_host()
    async with other.hub.follow(task_id) as follower:
        record = await world.load(task_id)
        follower.begin(record.last_seq)
        pids = await world.query(
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
        )
        assert len(pids) >= 2
        assert await soon(end_task(world.hosts[0], await world.load(task_id), TaskState.CANCELED))
        (event,) = await asyncio.wait_for(follower.next(10), 10)
        assert event.state is TaskState.CANCELED
