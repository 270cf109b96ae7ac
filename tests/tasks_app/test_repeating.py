"""Runs whose process died: repeated as often as the agent says, and recorded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agents.registry import AgentEntry
from protocol.requests import CancelTaskRequest
from protocol.states import TaskState
from tasks_app.execution.host import Host
from tasks_app.execution.sweeping import sweep
from tasks_app.operations import cancel_task, send_message
from tasks_app.tables.record import Event, EventKind
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import World, request, soon, until
from tests.tasks_app.writes import START, change, creation, entry, open_desk, status

EXPIRE = "UPDATE tasks_app_task SET lease_until = now() - interval '10 seconds'"
RUNS = "SELECT attempt, worker, state, fenced, started_at IS NOT NULL FROM tasks_app_execution ORDER BY attempt"
WORKING, COMPLETED = TaskState.WORKING, TaskState.COMPLETED


async def lost(world: World, agent: AgentEntry, text: str, *chunks: tuple[str, bool], **fields: Any) -> str:
    """A task whose process died after it had said WORKING and these chunks, (text, append), of the artifact `steps`."""
    body = f'{{"messageId":"m-{text}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}'
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id, worker="web-gone", message=entry(1, f"m-{text}", 1, body))
        events = [Event(1, EventKind.STATUS, status(WORKING, START), START, 1, WORKING)]
        for number, (content, append) in enumerate(chunks, 2):
            name = f"{new.task_id}.steps"
            artifact = json.dumps({"artifactId": name, "name": "steps", "parts": [{"text": content}]})
            event = Event(number, EventKind.ARTIFACT, artifact, START, 1, artifact_id=name, append=append)
            events.append(event)
        update = change(new.task_id, 1, worker="web-gone", at=START, **fields)
        update.events, update.last_seq = events, len(events)
        await desk.submit(new)
        await desk.submit(update)
    await world.query(EXPIRE)
    return new.task_id


async def sweep_twice(*hosts: Host) -> None:
    """What is overdue in two looks has lost its process."""
    for host in hosts * 2:
        await soon(sweep(host))


async def wait_for_state(world: World, task_id: str, state: TaskState) -> None:
    async with asyncio.timeout(10):
        while (await world.load(task_id)).state is not state:
            pass


async def test_a_web_process_repeats_the_lost_run_of_another(world: World) -> None:
    """The artifact has each chunk once, readers of the stream are told to replace what they had, and the run is
    recorded."""
    agent = await world.add_agent(executor="steps", max_retries=1)
    task_id = await lost(world, agent, "steps 3 0", ("chunk 1\\n", False), ("chunk 2\\n", True))
    await sweep_twice(world.hosts[0])
    await wait_for_state(world, task_id, COMPLETED)
    record = await world.load(task_id)
    (artifact,) = json.loads(record.render())["artifacts"]
    assert [p["text"] for p in artifact["parts"]] == ["chunk 1\n", "chunk 2\n", "chunk 3\n"]
    steps = f"{task_id}.steps"
    assert [e for e in await events_of(world, task_id) if e[0] == steps][2:] == [
        (steps, "chunk 1\n", False, False), (steps, "chunk 2\n", True, False), (steps, "chunk 3\n", True, True),
    ]  # fmt: skip
    assert (record.attempt, record.worker) == (2, world.hosts[0].origin)
    assert await world.query("SELECT retries, started_at IS NOT NULL FROM tasks_app_task") == [(1, True)]
    assert await world.query(RUNS) == [(1, "web-gone", WORKING.number, True, True)]
    await check_everything(world)


async def test_a_repeated_first_turn_is_a_first_turn(world: World) -> None:
    """`ask` asks when there was nothing before its message: what the lost run had said counts for nothing."""
    agent = await world.add_agent(executor="ask", max_retries=1)
    said_before = entry(2, "a-1", body='{"messageId":"a-1","role":"ROLE_AGENT","parts":[{"text":"well"}]}')
    task_id = await lost(world, agent, "hi", messages=[said_before])
    await sweep_twice(world.hosts[0])
    await wait_for_state(world, task_id, TaskState.INPUT_REQUIRED)
    answer = await soon(send_message(world.call(agent), request("for two", task_id=task_id)))
    assert answer.record.state is COMPLETED
    assert await world.query(RUNS) == [
        (1, "web-gone", WORKING.number, True, True),
        (2, world.hosts[0].origin, TaskState.INPUT_REQUIRED.number, False, True),
    ]
    assert await world.query("SELECT attempt, retries FROM tasks_app_task") == [(3, 0)], "a new turn counts anew"


async def test_a_run_is_not_repeated_for_ever(world: World) -> None:
    agent = await world.add_agent(executor="hold", max_retries=2)
    task_id = await lost(world, agent, "hold")
    other = await world.start_host()
    for host in (other, world.hosts[0]):
        await sweep_twice(host)
        await soon(_held(world, host, task_id))
        await world.query(EXPIRE)
    third = await world.start_host()
    await sweep_twice(third)
    record = await world.load(task_id)
    assert (record.state, said(record.status)) == (
        TaskState.FAILED, "The process that ran this task stopped, in each of 3 runs, so its result is unknown.",
    )  # fmt: skip
    assert [(row[0], row[3]) for row in await world.query(RUNS)] == [(1, True), (2, True), (3, True)]
    await check_everything(world)


async def _held(world: World, host: Host, task_id: str) -> None:
    while (await world.load(task_id)).worker != host.origin:
        pass


async def test_a_lost_run_that_somebody_wanted_cancelled_is_canceled(world: World) -> None:
    agent = await world.add_agent(executor="hold", max_retries=5)
    task_id = await lost(world, agent, "hold")
    await world.query("UPDATE tasks_app_task SET cancel_requested_at = now()")
    await sweep_twice(world.hosts[0])
    assert (await world.load(task_id)).state is TaskState.CANCELED
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]


async def test_the_lost_run_of_a_worker_is_rung_for(world: World) -> None:
    rings: list[tuple[str, int]] = []
    world.hosts[0].doorbell.ring = lambda *ring: rings.append(ring)  # type: ignore[method-assign]
    agent = await world.add_agent(executor="echo", execution="worker", max_retries=1)
    task_id = await lost(world, agent, "hi")
    await sweep_twice(world.hosts[0])
    assert rings == [(task_id, 2)]
    worker = await world.start_host("worker")
    await soon(sweep(worker))
    await wait_for_state(world, task_id, COMPLETED)
    assert (await world.load(task_id)).worker == worker.origin, "a worker needs no doorbell to find it"


async def test_who_comes_back_in_time_keeps_the_run(world: World) -> None:
    """Between the look and the decision its heartbeat came: nothing is taken away."""
    agent = await world.add_agent(executor="hold", max_retries=1)
    task_id = await lost(world, agent, "hold")
    await soon(sweep(world.hosts[0]))
    await world.query("UPDATE tasks_app_task SET lease_until = now() + interval '10 seconds'")
    await sweep_twice(world.hosts[0])
    assert await world.query("SELECT attempt, worker, state FROM tasks_app_task") == [(1, "web-gone", WORKING.number)]
    assert await world.query(RUNS) == []
    await soon(cancel_task(world.call(agent), CancelTaskRequest(id=task_id)))


async def test_two_processes_repeat_a_run_once(world: World) -> None:
    other = await world.start_host()
    agent = await world.add_agent(executor="echo", max_retries=1)
    ids = [await lost(world, agent, f"hi {n}") for n in range(20)]
    await soon(asyncio.gather(sweep(world.hosts[0]), sweep(other)))
    await soon(asyncio.gather(sweep(world.hosts[0]), sweep(other)))
    for task_id in ids:
        await wait_for_state(world, task_id, COMPLETED)
        assert [e[0] for e in await events_of(world, task_id)] == ["WORKING", f"{task_id}.echo", "COMPLETED"]
    assert await world.query("SELECT DISTINCT attempt, retries FROM tasks_app_task") == [(2, 1)]
    await check_everything(world)


async def test_a_doorbell_takes_effect_once_whenever_it_comes(world: World) -> None:
    """Many times at once, while it runs, after its end, for an older attempt and for no task."""
    worker = await world.start_host("worker")
    agent = await world.add_agent(executor="ask", execution="worker")
    answer = await soon(send_message(world.call(agent), request("hi", immediately=True)))
    task_id = answer.record.id

    def ring(attempt: int) -> None:
        for _ in range(50):
            worker.behaviours.take_queued(task_id, attempt)

    ring(1)
    await wait_for_state(world, task_id, TaskState.INPUT_REQUIRED)
    await soon(send_message(world.call(agent), request("for two", task_id=task_id, immediately=True)))
    ring(1)
    ring(2)
    await wait_for_state(world, task_id, COMPLETED)
    before = await world.dump()
    ring(1)
    ring(2)
    worker.behaviours.take_queued("absent", 1)
    await until(lambda: worker.behaviours.room() == 500, "all doorbells to be heard")
    assert await world.dump() == before
    assert [e[0] for e in await events_of(world, task_id)] == [
        "WORKING", "INPUT_REQUIRED", "WORKING", f"{task_id}.answer", "COMPLETED",
    ]  # fmt: skip


@pytest.mark.parametrize("max_retries", [0, 3])
async def test_a_process_that_stops_hands_its_runs_back_if_they_may_be_repeated(world: World, max_retries: int) -> None:
    """Another process has it at once, under a new attempt, and the agent's retries are not used up."""
    other = await world.start_host()
    agent = await world.add_agent(executor="hold", max_retries=max_retries)
    call = world.call(agent, host=other)
    task_id = (await soon(send_message(call, request("hold", immediately=True)))).record.id
    await wait_for_state(world, task_id, WORKING)
    world.hosts.remove(other)
    await soon(other.stop())
    record = await world.load(task_id)
    if not max_retries:
        assert said(record.status) == "The host was stopped before the agent had finished."
        assert record.worker == other.origin
        return
    assert (record.state, record.worker, record.attempt) == (WORKING, None, 2)
    await asyncio.wait_for(world.hosts[0].called.wait(), 5)
    await soon(sweep(world.hosts[0]))
    await soon(_held(world, world.hosts[0], task_id))
    assert await world.query(RUNS) == [(1, other.origin, WORKING.number, True, True)]
    assert await world.query("SELECT attempt, retries FROM tasks_app_task") == [(2, 0)]
    await check_everything(world)
