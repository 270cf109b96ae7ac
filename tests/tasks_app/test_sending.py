"""SendMessage (§3.1.1, §3.2.2): what is waited for, what a follow-up is, and that the same message counts once."""

from __future__ import annotations

import asyncio
import json

import pytest

from agents.runtimes.base import Run, Updates
from protocol.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from protocol.states import TaskState
from tasks_app.execution.claiming import claim_task
from tasks_app.operations import SendResult, send_message
from tasks_app.operations import sending as sending_module
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import World, ask, complete, request, say, soon, until


async def test_the_message_is_stored_before_the_agent_runs(world: World) -> None:
    seen: list[list[tuple[object, ...]]] = []

    async def act(run: Run, updates: Updates) -> None:
        seen.append(await world.query("SELECT task_id, message_id, body FROM tasks_app_message"))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request("hi", message_id="m-1")))
    ((task_id, message_id, body),) = seen[0]
    assert (task_id, message_id) == (answer.record.id, "m-1")
    assert json.loads(str(body)) == {
        "messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}],
        "taskId": answer.record.id, "contextId": answer.record.context_id,
    }  # fmt: skip


async def test_the_callers_context_is_kept_and_a_new_one_made(world: World) -> None:
    entry = await world.add_agent(complete)
    call = world.call(entry)
    one = await soon(send_message(call, request(context_id="my context")))
    two = await soon(send_message(call, request(context_id="my context")))
    three = await soon(send_message(call, request()))
    assert [a.record.context_id for a in (one, two)] == ["my context"] * 2
    assert one.record.id != two.record.id
    assert three.record.context_id not in ("", "my context")


async def test_immediately_is_before_the_agents_end(world: World) -> None:
    go_on = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await go_on.wait()
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    assert answer.record.state in (TaskState.SUBMITTED, TaskState.WORKING)
    go_on.set()
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert (await world.load(answer.record.id)).state is TaskState.COMPLETED


async def test_immediately_does_not_wait_for_a_silent_agent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending_module, "FIRST_UPDATE_SECONDS", 0.05)
    go_on = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await go_on.wait()
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    assert answer.record.state is TaskState.SUBMITTED
    go_on.set()
    await until(lambda: not world.hosts[0].executions, "the run to end")


async def test_history_length_of_the_answer(world: World) -> None:
    entry = await world.add_agent(ask)
    call = world.call(entry)
    first = await soon(send_message(call, request(message_id="m-1")))
    answer = await soon(send_message(call, request(message_id="m-2", task_id=first.record.id, history_length=1)))
    assert [m["messageId"] for m in json.loads(answer.payload())["task"]["history"]] == ["m-2"]
    again = await soon(send_message(call, request(message_id="m-3", history_length=0)))
    assert "history" not in json.loads(again.payload())["task"]


async def test_a_follow_up_continues_the_task(world: World) -> None:
    entry = await world.add_agent(ask)
    call = world.call(entry)
    first = await soon(send_message(call, request("book a table", message_id="m-1")))
    answer = await soon(send_message(call, request("for two", message_id="m-2", task_id=first.record.id)))
    task = json.loads(answer.payload())["task"]
    assert (task["id"], task["contextId"]) == (first.record.id, first.record.context_id)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [m["parts"][0]["text"] for m in task["history"]] == ["book a table", "well?", "for two"]
    stored = await world.load(first.record.id)
    assert (stored.attempt, json.loads(stored.render())) == (2, task)
    assert await events_of(world, first.record.id) == [
        ("INPUT_REQUIRED",), ("WORKING",), ("answer-3", "for two", False, False), ("COMPLETED",),
    ]  # fmt: skip
    await check_everything(world)


@pytest.mark.parametrize("state", ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED"])
async def test_a_follow_up_to_an_ended_task_is_refused(world: World, state: str) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState(state))

    entry = await world.add_agent(act)
    call = world.call(entry)
    first = await soon(send_message(call, request()))
    before = await world.dump()
    with pytest.raises(UnsupportedOperationError) as refused:
        await soon(send_message(call, request(task_id=first.record.id)))
    assert refused.value.message == f"The task is {state} and takes no more messages."
    assert await world.dump() == before


async def test_a_follow_up_to_a_busy_task_is_refused(world: World) -> None:
    go_on = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await go_on.wait()
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    call = world.call(entry)
    first = await soon(send_message(call, request(immediately=True)))
    (run,) = world.hosts[0].executions.values()
    await until(lambda: run.record.state is TaskState.WORKING, "what the agent said first to be stored")
    before = await world.dump()
    with pytest.raises(UnsupportedOperationError):
        await soon(send_message(call, request(task_id=first.record.id)))
    assert await world.dump() == before
    go_on.set()
    await until(lambda: not world.hosts[0].executions, "the run to end")


async def test_a_follow_up_to_what_one_may_not_see_is_refused(world: World) -> None:
    entry, other = await world.add_agent(ask), await world.add_agent(ask)
    first = await soon(send_message(world.call(entry), request()))
    before = await world.dump()
    for call, task_id in (
        (world.call(entry, "bob"), first.record.id),
        (world.call(other), first.record.id),
        (world.call(entry), "absent"),
    ):
        with pytest.raises(TaskNotFoundError) as refused:
            await soon(send_message(call, request(task_id=task_id)))
        assert refused.value.metadata == {"taskId": task_id}
    assert await world.dump() == before


@pytest.mark.spec("3.4.3")
async def test_a_follow_up_in_another_context_is_refused(world: World) -> None:
    entry = await world.add_agent(ask)
    call = world.call(entry)
    first = await soon(send_message(call, request(context_id="one")))
    before = await world.dump()
    with pytest.raises(InvalidParamsError) as refused:
        await soon(send_message(call, request(task_id=first.record.id, context_id="two")))
    assert [(v.field, v.description) for v in refused.value.violations] == [
        ("message.contextId", "is not the context of the task")
    ]
    assert await world.dump() == before
    answer = await soon(send_message(call, request(task_id=first.record.id, context_id="one")))
    assert answer.record.state is TaskState.COMPLETED


async def test_of_many_follow_ups_at_once_one_is_taken(world: World) -> None:
    other = await world.start_host()
    go_on = asyncio.Event()
    texts: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        if run.task is None:
            await updates.status(TaskState.INPUT_REQUIRED, say("well?"))
            return
        texts.append(run.text)
        await go_on.wait()
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    first = await soon(send_message(world.call(entry), request()))
    follow_up = {"task_id": first.record.id, "immediately": True}
    sends = [
        asyncio.create_task(send_message(world.call(entry, host=host), request(f"answer {n}", **follow_up)))
        for n, host in enumerate([world.hosts[0], other] * 10)
    ]
    outcomes = await soon(asyncio.gather(*sends, return_exceptions=True))
    go_on.set()
    won = [n for n, o in enumerate(outcomes) if isinstance(o, SendResult)]
    assert len(won) == 1
    assert all(isinstance(o, UnsupportedOperationError) for n, o in enumerate(outcomes) if n not in won)
    await until(lambda: not (world.hosts[0].executions or other.executions), "the run to end")
    assert texts == [f"answer {won[0]}"], "the agent ran once"
    await check_everything(world)


async def test_waiting_for_a_task_that_another_process_runs(world: World) -> None:
    worker = await world.start_host("worker")
    entry = await world.add_agent(executor="ask", execution="worker")
    call = world.call(entry)
    sending = asyncio.create_task(send_message(call, request("hi")))
    async with asyncio.timeout(10):
        while not (rows := await world.query("SELECT id, attempt FROM tasks_app_task WHERE worker IS NULL")):
            pass
    assert not sending.done()
    ((task_id, attempt),) = rows
    assert await soon(claim_task(worker, task_id, attempt)) is not None
    answer = await soon(sending)
    assert (answer.record.state, said(answer.record.status)) == (
        TaskState.INPUT_REQUIRED, "What should I know before I go on?",
    )  # fmt: skip
    sending = asyncio.create_task(send_message(call, request("two", task_id=task_id)))
    async with asyncio.timeout(10):
        while (record := await world.load(task_id)).attempt == attempt:
            pass
    assert (record.worker, record.state) == (None, TaskState.WORKING)
    assert await soon(claim_task(worker, task_id, attempt)) is None, "an old doorbell"
    assert await soon(claim_task(worker, task_id, record.attempt)) is not None
    answer = await soon(sending)
    assert answer.record.state is TaskState.COMPLETED
    await check_everything(world)


async def test_a_message_of_an_agent_in_a_worker(world: World) -> None:
    worker = await world.start_host("worker")
    entry = await world.add_agent(executor="direct", execution="worker")
    sending = asyncio.create_task(send_message(world.call(entry), request("hi")))
    async with asyncio.timeout(10):
        while not (rows := await world.query("SELECT id, attempt FROM tasks_app_task")):
            pass
    await soon(claim_task(worker, *rows[0]))
    assert json.loads((await soon(sending)).payload())["message"]["parts"] == [{"text": "hi"}]
    immediately = await soon(send_message(world.call(entry), request("ho", immediately=True)))
    await soon(claim_task(worker, immediately.record.id, 1))
    await until(lambda: not worker.executions, "the run to end")
    record = await world.load(immediately.record.id)
    assert (record.state, said(record.status)) == (TaskState.COMPLETED, "ho"), "who has a task is told by it"


async def test_a_doorbell_rung_twice_runs_the_task_once(world: World) -> None:
    workers = [await world.start_host("worker") for _ in range(2)]
    entry = await world.add_agent(executor="echo", execution="worker")
    for _ in range(10):
        answer = await soon(send_message(world.call(entry), request(immediately=True)))
        claims = [claim_task(w, answer.record.id, 1) for w in workers * 3]
        executions = [e for e in await soon(asyncio.gather(*claims)) if e is not None]
        assert len(executions) == 1
        await soon(executions[0].settled())
        assert [e[0] for e in await events_of(world, answer.record.id)] == [
            "WORKING", f"{answer.record.id}.echo", "COMPLETED",
        ]  # fmt: skip
    await check_everything(world)
