"""Every way in which a run can end, and that each task has one end only."""

from __future__ import annotations

import asyncio
import json

import pytest

from agents.runtimes.base import Run, Updates
from protocol.errors import InvalidAgentResponseError
from protocol.model import Artifact, Message, Role
from protocol.states import TaskState
from tasks_app.operations import send_message
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import World, chunk, nothing, request, say, soon, until, work

FAILED = "The agent failed to process the message."
UNFINISHED = "The agent ended without a result."
TIMEOUT = "The agent took longer than its time limit."


async def test_an_agent_that_ends_without_a_result_failed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for act, events in (
        (nothing, [("FAILED",)]),
        (work, [("WORKING",), ("FAILED",)]),
    ):
        entry = await world.add_agent(act)
        answer = await soon(send_message(world.call(entry), request()))
        assert answer.record.state is TaskState.FAILED
        assert said(answer.record.status) == UNFINISHED
        assert await events_of(world, answer.record.id) == events
    await check_everything(world)


@pytest.mark.parametrize("progress", [0, 2])
async def test_an_agent_that_raises_failed_without_internals(
    world: World, caplog: pytest.LogCaptureFixture, progress: int
) -> None:
    async def act(run: Run, updates: Updates) -> None:
        for n in range(progress):
            await updates.artifact(chunk(f"{n}", "x"), append=n > 0)
        raise RuntimeError("password=hunter2 in /etc/agent.conf")

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert answer.record.state is TaskState.FAILED
    assert said(answer.record.status) == FAILED
    assert b"hunter2" not in answer.payload()
    assert "hunter2" in caplog.text, "the operator is told"
    kept = [("x", f"{n}", n > 0, False) for n in range(progress)]
    assert await events_of(world, answer.record.id) == [*kept, ("FAILED",)]
    for table in ("event", "message"):
        assert await world.query(f"SELECT 1 FROM tasks_app_{table} WHERE body LIKE '%%hunter2%%'") == []
    await check_everything(world)


@pytest.mark.parametrize(
    "error", [KeyError("k"), TimeoutError("a call of the agent's own"), ExceptionGroup("g", [ValueError()])], ids=repr
)
async def test_whatever_an_agent_raises_is_its_failure(world: World, error: Exception) -> None:
    async def act(run: Run, updates: Updates) -> None:
        raise error

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert (answer.record.state, said(answer.record.status)) == (TaskState.FAILED, FAILED)


@pytest.mark.parametrize("end", [TaskState.COMPLETED, TaskState.REJECTED, TaskState.CANCELED, TaskState.FAILED])
async def test_an_error_after_the_end_changes_nothing(world: World, end: TaskState) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(end, say("over"))
        raise RuntimeError("too late")

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert (answer.record.state, said(answer.record.status)) == (end, "over")
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await events_of(world, answer.record.id) == [(end.name,)]
    await check_everything(world)


async def test_updates_after_the_end_are_refused_and_change_nothing(world: World) -> None:
    refused: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.COMPLETED)
        for late in (
            updates.status(TaskState.WORKING),
            updates.status(TaskState.COMPLETED, say("again")),
            updates.artifact(chunk("late")),
            updates.reply(say("late")),
        ):
            try:
                await late
            except InvalidAgentResponseError as error:
                refused.append(error.message)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert len(refused) == 4
    assert await events_of(world, answer.record.id) == [("COMPLETED",)]


@pytest.mark.parametrize("bad", ["empty artifact", "empty message", "no artifact id", "after the last chunk"])
async def test_an_update_that_is_not_allowed_fails_the_task_if_the_agent_does_not_mind_it(
    world: World, bad: str
) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.artifact(chunk("good", "x"), last_chunk=True)
        if bad == "empty artifact":
            await updates.artifact(Artifact(artifact_id="y", parts=[]))
        elif bad == "empty message":
            await updates.status(TaskState.WORKING, Message(message_id="a-1", role=Role.AGENT, parts=[]))
        elif bad == "no artifact id":
            await updates.artifact(chunk("?", ""))
        else:
            await updates.artifact(chunk("more", "x"), append=True)
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert (answer.record.state, said(answer.record.status)) == (TaskState.FAILED, FAILED)
    assert await events_of(world, answer.record.id) == [("x", "good", False, True), ("FAILED",)]


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
async def test_an_interrupted_task_is_left_as_it_is(world: World, state: TaskState) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(state, say("well?"))

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert (answer.record.state, said(answer.record.status)) == (state, "well?")
    await until(lambda: not world.hosts[0].executions, "the run to end")
    record = await world.load(answer.record.id)
    assert (record.state, record.worker) == (state, world.hosts[0].origin), "who ran it is kept"


async def test_an_error_after_an_interruption_is_a_failure(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.INPUT_REQUIRED, say("well?", "a-1"))
        raise RuntimeError

    entry = await world.add_agent(act)
    await soon(send_message(world.call(entry), request()))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    record = await world.only_task()
    assert (record.state, said(record.status)) == (TaskState.FAILED, FAILED)
    assert json.loads(record.history[-1])["messageId"] == "a-1"


async def test_an_agent_that_takes_too_long(world: World) -> None:
    ended = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    entry = await world.add_agent(act, timeout_seconds=1)
    answer = await soon(send_message(world.call(entry), request()))
    assert (answer.record.state, said(answer.record.status)) == (TaskState.FAILED, TIMEOUT)
    assert ended.is_set(), "its code was stopped"
    assert await events_of(world, answer.record.id) == [("WORKING",), ("FAILED",)]


async def test_an_agent_that_takes_too_long_and_does_not_let_itself_be_stopped(world: World) -> None:
    """Whoever swallows the cancellation is fenced off: the task ends all the same."""
    stop = asyncio.Event()
    late: list[BaseException] = []

    async def act(run: Run, updates: Updates) -> None:
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue
        try:
            await updates.status(TaskState.COMPLETED, say("at last"))
        except BaseException as error:
            late.append(error)
            raise

    entry = await world.add_agent(act, timeout_seconds=1, cancel_grace_seconds=1)
    try:
        answer = await soon(send_message(world.call(entry), request()))
        assert (answer.record.state, said(answer.record.status)) == (TaskState.FAILED, TIMEOUT)
        before = await world.dump()
    finally:
        stop.set()
    await until(lambda: late, "the code to go on")
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await world.dump() == before
    await check_everything(world)
