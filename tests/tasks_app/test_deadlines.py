"""Deadlines of turns and of answers: nothing is unfinished for ever, whatever becomes of its agent or its process."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import Raw

from agents.runtimes.base import Run, Updates
from protocol.errors import InvalidParamsError
from protocol.requests import SendMessageRequest
from protocol.states import TaskState
from protocol.timestamps import print_timestamp
from tasks_app.execution.claiming import claim_task
from tasks_app.execution.sweeping import in_words, sweep
from tasks_app.operations import send_message, start_task
from tasks_app.tables.record import TaskRecord
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import World, beat, chunk, request, say, soon, until, work

OVERDUE = "The task was not done by its deadline."
PASS = "UPDATE tasks_app_task SET deadline_at = now() - interval '1 ms', lease_until = now() - interval '1 ms'"
LATE = timedelta(milliseconds=300)


def with_deadline(value: str, message_id: str = "", **fields: Any) -> SendMessageRequest:
    """A request whose metadata has this JSON as `deadline`."""
    made = request(message_id=message_id, immediately=True, **fields)
    made.metadata = Raw(f'{{"priority":1,"deadline":{value}}}'.encode())
    return made


def at(moment: datetime) -> str:
    return f'"{print_timestamp(moment)}"'


async def failed(world: World, task_id: str, text: str) -> TaskRecord:
    """The task once it has failed for this reason."""
    async with asyncio.timeout(10):
        while not (record := await world.load(task_id)).state.terminal:
            pass
    assert (record.state, said(record.status)) == (TaskState.FAILED, text)
    return record


async def stored_deadline(world: World) -> datetime:
    ((deadline_at,),) = await world.query("SELECT deadline_at FROM tasks_app_task")
    found: datetime = deadline_at
    return found


async def test_a_turn_has_the_deadline_of_its_agent(world: World) -> None:
    entry = await world.add_agent(executor="ask", deadline_seconds=100)
    first = (await soon(send_message(world.call(entry), request()))).record
    assert await stored_deadline(world) == first.created_at + timedelta(seconds=100)
    await world.query("UPDATE tasks_app_task SET deadline_at = now() - interval '1 day'")
    second = (await soon(send_message(world.call(entry), request(task_id=first.id)))).record
    assert second.state is TaskState.COMPLETED, "a message that comes later has its own"
    assert await stored_deadline(world) > first.created_at


async def test_the_earlier_deadline_counts(world: World) -> None:
    entry = await world.add_agent(work, deadline_seconds=100)
    asked = datetime(2999, 1, 1, tzinfo=UTC)
    record = (await soon(send_message(world.call(entry), with_deadline(at(asked))))).record
    assert await stored_deadline(world) == record.created_at + timedelta(seconds=100)
    await world.query("DELETE FROM tasks_app_task")
    sooner = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=50)
    await soon(send_message(world.call(entry), with_deadline(at(sooner))))
    assert await stored_deadline(world) == sooner
    inherited = sooner - timedelta(seconds=10)
    await world.query("DELETE FROM tasks_app_task")
    await soon(send_message(world.call(entry, deadline_at=inherited), with_deadline(at(sooner))))
    assert await stored_deadline(world) == inherited


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"tomorrow"', "must be an RFC 3339 timestamp with an offset, such as 2030-01-02T03:04:05Z"),
        ('"2030-01-02T03:04:05"', "must be an RFC 3339 timestamp with an offset, such as 2030-01-02T03:04:05Z"),
        ("17", "must be an RFC 3339 timestamp with an offset, such as 2030-01-02T03:04:05Z"),
        ('{"at":1}', "must be an RFC 3339 timestamp with an offset, such as 2030-01-02T03:04:05Z"),
        ('"2025-01-15T10:00:00Z"', "has passed already"),
    ],
)
async def test_a_deadline_that_is_none_is_refused(world: World, value: str, text: str) -> None:
    entry = await world.add_agent()
    before = await world.dump()
    with pytest.raises(InvalidParamsError) as raised:
        await send_message(world.call(entry), with_deadline(value))
    assert [(v.field, v.description) for v in raised.value.violations] == [("metadata.deadline", text)]
    assert await world.dump() == before


async def test_a_message_is_the_same_after_its_deadline(world: World) -> None:
    entry = await world.add_agent(executor="echo")
    made = with_deadline(at(datetime.now(UTC) + LATE), "m-1")
    first = await soon(send_message(world.call(entry), made))
    again = with_deadline(bytes(made.metadata).decode().partition('"deadline":')[2][:-1], "m-1")
    while datetime.now(UTC) < await stored_deadline(world):
        pass
    assert (await soon(send_message(world.call(entry), again))).record.id == first.record.id


async def test_the_task_rest_dialect_keeps_a_date_that_has_passed(world: World) -> None:
    entry = await world.add_agent(executor="echo")
    call = world.call(entry)
    call.dialect = "HTTP+JSON/tasks"
    record = await soon(start_task(call, with_deadline('"2025-01-15T10:00:00Z"')))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert (await world.load(record.id)).state is TaskState.COMPLETED


@pytest.mark.parametrize("obeys", [True, False])
async def test_a_run_is_stopped_at_its_deadline_and_says_nothing_more(world: World, obeys: bool) -> None:
    refused: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if obeys:
                raise
        try:
            await updates.artifact(chunk("too late"))
        except Exception as error:
            refused.append(type(error).__name__)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), with_deadline(at(datetime.now(UTC) + LATE))))
    await failed(world, answer.record.id, OVERDUE)
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert refused == ([] if obeys else ["InvalidAgentResponseError"])
    assert await events_of(world, answer.record.id) == [("WORKING",), ("FAILED",)]
    await check_everything(world)


@pytest.mark.parametrize("agent", ["there", "disabled", "deleted"])
async def test_a_queued_task_that_no_worker_ever_takes(world: World, agent: str) -> None:
    entry = await world.add_agent(executor="echo", execution="worker")
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    if agent != "there":
        await world.query("DELETE FROM agents_skill")
        await world.query("DELETE FROM agents_agent" if agent == "deleted" else "UPDATE agents_agent SET enabled=false")
    await world.hosts[0].registry.load()
    await soon(sweep(world.hosts[0]))
    assert (await world.load(answer.record.id)).state is TaskState.SUBMITTED
    await world.query(PASS)
    await soon(sweep(world.hosts[0]))
    record = await failed(world, answer.record.id, OVERDUE)
    assert await soon(claim_task(world.hosts[0], record.id, 1)) is None
    await check_everything(world)


async def test_a_run_that_no_process_stops_is_fenced_off(world: World) -> None:
    """Its process is not heard, does not stop it, and another one sees that the time is over."""
    other = await world.start_host()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await asyncio.Event().wait()

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    async with asyncio.timeout(10):
        while (await world.load(answer.record.id)).state is not TaskState.WORKING:
            pass
    await world.query(PASS)
    await soon(sweep(other))
    await failed(world, answer.record.id, OVERDUE)
    await beat(world.hosts[0])
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await events_of(world, answer.record.id) == [("WORKING",), ("FAILED",)]


async def test_a_lease_never_lasts_beyond_the_deadline(world: World) -> None:
    """So whoever looks for expired leases finds what is overdue, also where the process is heard."""
    entry = await world.add_agent(executor="hold", deadline_seconds=2)
    await soon(send_message(world.call(entry), request("hold", immediately=True)))
    await beat(world.hosts[0])
    assert await world.query("SELECT lease_until = deadline_at FROM tasks_app_task") == [(True,)]


async def test_a_task_of_an_older_version_gets_a_deadline(world: World) -> None:
    """When it is called for again, and when it is claimed."""
    entry = await world.add_agent(executor="hold", execution="worker", deadline_seconds=50)
    answer = await soon(send_message(world.call(entry), request("hold", immediately=True)))
    await world.query("UPDATE tasks_app_task SET deadline_at = NULL, lease_until = now() - interval '10 seconds'")
    await soon(sweep(world.hosts[0]))
    left = "SELECT extract(epoch FROM deadline_at - now())::float8 FROM tasks_app_task"
    assert 86000 < (await world.query(left))[0][0] < 86401
    await world.query("UPDATE tasks_app_task SET deadline_at = NULL")
    worker = await world.start_host("worker")
    assert await soon(claim_task(worker, answer.record.id, 1)) is not None
    assert 40 < (await world.query(left))[0][0] < 51


async def test_an_executor_that_goes_on_by_itself_has_time_again(world: World) -> None:
    """It waited longer than the deadline for somebody who is not the caller."""
    go_on = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.AUTH_REQUIRED, say("well?"))
        await go_on.wait()
        await updates.status(TaskState.WORKING)
        await updates.artifact(chunk("done"))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), with_deadline(at(datetime.now(UTC) + LATE))))
    while datetime.now(UTC) < await stored_deadline(world):
        pass
    await soon(sweep(world.hosts[0]))
    assert (await world.load(answer.record.id)).state is TaskState.AUTH_REQUIRED
    go_on.set()
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert (await world.load(answer.record.id)).state is TaskState.COMPLETED


@pytest.mark.parametrize("executor", ["ask", "auth"])
async def test_nobody_answers(world: World, executor: str) -> None:
    entry = await world.add_agent(executor=executor, answer_within_seconds=90)
    patient = await world.add_agent(executor=executor)
    ids = [(await soon(send_message(world.call(e), request()))).record.id for e in (entry, patient)]
    await world.query("UPDATE tasks_app_task SET status_at = now() - interval '89 seconds'")
    before = await world.dump()
    await soon(sweep(world.hosts[0]))
    assert await world.dump() == before
    await world.query("UPDATE tasks_app_task SET status_at = now() - interval '91 seconds'")
    await soon(sweep(world.hosts[0]))
    await failed(world, ids[0], "Nobody answered within 90 seconds, and the agent waits no longer.")
    assert not (await world.load(ids[1])).state.terminal
    assert await world.query("SELECT attempt, state, fenced FROM tasks_app_execution") == [
        (1, (await world.load(ids[1])).state.number, False)
    ]


async def test_an_executor_that_waits_in_its_process_hears_that_nobody_answers(world: World) -> None:
    ended = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.INPUT_REQUIRED, say("well?"))
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    other = await world.start_host()
    entry = await world.add_agent(act, answer_within_seconds=1)
    answer = await soon(send_message(world.call(entry), request()))
    await world.query("UPDATE tasks_app_task SET status_at = now() - interval '2 seconds'")
    await soon(sweep(other))
    await failed(world, answer.record.id, "Nobody answered within 1 second, and the agent waits no longer.")
    await beat(world.hosts[0])
    await soon(ended.wait())
    await until(lambda: not world.hosts[0].executions, "the run to end")
    await check_everything(world)


def test_times_in_words() -> None:
    assert [in_words(n) for n in (1, 61, 60, 5400, 3600, 86400, 172800)] == [
        "1 second", "61 seconds", "1 minute", "90 minutes", "1 hour", "1 day", "2 days",
    ]  # fmt: skip
