"""One run of an agent, from its code to the log."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import weakref

import pytest

from agents.runtimes.base import Run, Updates
from agents.runtimes.current import current_run
from protocol.states import TaskState
from tasks_app.execution import attempt
from tasks_app.operations import send_message
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import PATIENCE, World, chunk, complete, request, say, soon, until

FAILED = "The agent failed to process the message."


async def test_an_agent_that_completes(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING, say("on it", "a-1"))
        await updates.artifact(chunk("one ", "x"))
        await updates.artifact(chunk("two", "x"), append=True, last_chunk=True)
        await updates.status(TaskState.COMPLETED, say("done", "a-2"))

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request("hi", message_id="m-1")))
    task = json.loads(answer.payload())["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["status"]["message"]["messageId"] == "a-2"
    assert [m["messageId"] for m in task["history"]] == ["m-1", "a-1"]
    assert task["artifacts"] == [{"artifactId": "x", "parts": [{"text": "one "}, {"text": "two"}]}]
    assert await events_of(world, task["id"]) == [
        ("WORKING",), ("x", "one ", False, False), ("x", "two", True, True), ("COMPLETED",),
    ]  # fmt: skip
    stored = await world.load(task["id"])
    assert json.loads(stored.render()) == task, "what was answered is what is stored"
    assert stored.worker == world.hosts[0].origin, "who ran it is kept"
    await check_everything(world)


async def test_a_run_that_has_ended_is_no_work_for_the_garbage_collector(world: World) -> None:
    """Cycles of garbage at this place made each call a fifth more expensive."""
    runs: list[weakref.ref[Updates]] = []

    async def act(run: Run, updates: Updates) -> None:
        assert current_run()[0] is run
        runs.append(weakref.ref(updates))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    gc.disable()
    try:
        await soon(send_message(world.call(entry), request()))
        await until(lambda: not world.hosts[0].executions, "the end of the run")
        await until(lambda: runs[0]() is None, "the run to be forgotten")
    finally:
        gc.enable()


async def test_updates_of_one_moment_cost_one_write(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        for n in range(50):
            await updates.artifact(chunk(f"{n} ", "x"), append=n > 0)
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    await soon(send_message(world.call(entry), request()))
    record = await world.only_task()
    assert (record.last_seq, record.version) == (52, 2)


async def test_updates_while_a_write_is_under_way_wait_for_it_together(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        for n in range(200):
            await updates.artifact(chunk(f"{n} ", "x"), append=n > 0)
            await asyncio.sleep(0)
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    record = await world.only_task()
    assert record.last_seq == 202
    assert record.version < 100, "chunks coalesce"
    (artifact,) = json.loads(answer.payload())["task"]["artifacts"]
    assert [p["text"] for p in artifact["parts"]] == [f"{n} " for n in range(200)]


async def test_an_agent_far_ahead_of_the_database_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the task is locked, so nothing can be stored: the agent is held, its memory bounded."""
    monkeypatch.setattr(attempt, "_BUFFERED_EVENTS", 100)
    produced = 0
    started = asyncio.Event()
    locked = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        nonlocal produced
        await updates.status(TaskState.WORKING)
        started.set()
        await locked.wait()
        while produced < 1000:
            await updates.artifact(chunk(f"{produced},", "x"), append=produced > 0)
            produced += 1
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    sending = asyncio.create_task(send_message(world.call(entry), request()))
    await soon(started.wait())
    async with asyncio.timeout(PATIENCE):
        while (await world.only_task()).state is not TaskState.WORKING:
            pass
    async with world.locked_tasks():
        locked.set()
        await until(lambda: produced == 100, "the agent to fill what it may")
        for _ in range(1000):
            await asyncio.sleep(0)
        held = produced
    answer = await soon(sending)
    assert held == 100
    (artifact,) = json.loads(answer.payload())["task"]["artifacts"]
    assert "".join(p["text"] for p in artifact["parts"]) == "".join(f"{n}," for n in range(1000))


async def test_a_message_is_the_answer_and_no_task(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.reply(say("just this", "a-1"))

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request(context_id="context-1")))
    assert json.loads(answer.payload()) == {
        "message": {
            "messageId": "a-1", "role": "ROLE_AGENT", "parts": [{"text": "just this"}], "contextId": "context-1",
        }
    }  # fmt: skip
    assert await events_of(world, answer.record.id) == [("MESSAGE",)]
    await check_everything(world)


async def test_a_message_after_an_update_fails_the_task(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await updates.reply(say("and now a message"))

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert (answer.record.state, said(answer.record.status)) == (TaskState.FAILED, FAILED)
    assert await events_of(world, answer.record.id) == [("WORKING",), ("FAILED",)]


async def test_a_message_for_who_was_given_a_task_already_completes_it(world: World) -> None:
    go_on = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await go_on.wait()
        await updates.reply(say("just this", "a-1"))

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    assert answer.record.state is TaskState.SUBMITTED
    go_on.set()
    await until(lambda: not world.hosts[0].executions, "the run to end")
    record = await world.load(answer.record.id)
    assert (record.state, said(record.status)) == (TaskState.COMPLETED, "just this")


async def test_an_update_that_the_database_refuses_fails_the_task_at_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Not only when the lease of a run that seems lost is over."""
    await world.query(
        "CREATE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.artifact_id = 'poison' THEN RAISE 'no' USING ERRCODE = 'check_violation'; END IF;"
        " RETURN NEW; END $$;"
        "CREATE TRIGGER refuse_poison BEFORE INSERT ON tasks_app_event FOR EACH ROW EXECUTE FUNCTION refuse_poison()"
    )

    async def act(run: Run, updates: Updates) -> None:
        await updates.artifact(chunk("x", "poison"))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    try:
        answer = await asyncio.wait_for(send_message(world.call(entry), request()), 5)
    finally:
        await world.query("DROP TRIGGER refuse_poison ON tasks_app_event; DROP FUNCTION refuse_poison()")
    assert (answer.record.state, said(answer.record.status)) == (TaskState.FAILED, FAILED)
    assert await events_of(world, answer.record.id) == [("FAILED",)]


async def test_a_caller_who_leaves_does_not_end_the_run(world: World) -> None:
    go_on = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await go_on.wait()
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    sending = asyncio.create_task(send_message(world.call(entry), request()))
    await until(lambda: world.hosts[0].executions, "the run to start")
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    go_on.set()
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert (await world.only_task()).state is TaskState.COMPLETED


async def test_stopping_the_host_waits_for_what_is_nearly_done_and_fails_the_rest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.execution.host._SHUTDOWN_GRACE_SECONDS", 0.3)
    stopping = asyncio.Event()

    async def quick(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await stopping.wait()
        await updates.status(TaskState.COMPLETED)

    async def slow(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await asyncio.Event().wait()

    other = await world.start_host()
    ids = []
    for act in (quick, slow):
        entry = await world.add_agent(act)
        answer = await soon(send_message(world.call(entry, host=other), request(immediately=True)))
        ids.append(answer.record.id)
    world.hosts.remove(other)
    stop = asyncio.create_task(other.stop())
    await asyncio.sleep(0)
    stopping.set()
    await soon(stop)
    quick_one, slow_one = [await world.load(i) for i in ids]
    assert quick_one.state is TaskState.COMPLETED
    assert (slow_one.state, said(slow_one.status)) == (
        TaskState.FAILED, "The host was stopped before the agent had finished.",
    )  # fmt: skip
    await check_everything(world)


async def test_an_agent_gets_the_message_the_task_and_its_history(world: World) -> None:
    runs: list[Run] = []

    async def act(run: Run, updates: Updates) -> None:
        runs.append(run)
        await updates.artifact(chunk(run.text, f"x{len(runs)}"))
        state = TaskState.INPUT_REQUIRED if len(runs) < 3 else TaskState.COMPLETED
        await updates.status(state, say("more?", f"a-{len(runs)}"))

    entry = await world.add_agent(act)
    call = world.call(entry)
    first = await soon(send_message(call, request("one", message_id="m-1")))
    for n, text in ((2, "two"), (3, "three")):
        await soon(send_message(call, request(text, message_id=f"m-{n}", task_id=first.record.id)))
    assert [r.text for r in runs] == ["one", "two", "three"]
    assert runs[0].task is None
    third = runs[2].task
    assert third is not None
    assert (third.id, third.context_id, third.status.state) == (
        first.record.id, first.record.context_id, TaskState.WORKING,
    )  # fmt: skip
    assert [m.message_id for m in third.history] == ["m-1", "a-1", "m-2", "a-2", "m-3"]
    assert [a.artifact_id for a in third.artifacts] == ["x1", "x2"]
    assert {(r.task_id, r.context_id, r.caller.owner, r.agent_slug) for r in runs} == {
        (first.record.id, first.record.context_id, "alice", entry.slug)
    }
    await check_everything(world)


async def test_an_agent_gets_the_tasks_that_a_message_refers_to_and_that_its_sender_may_see(world: World) -> None:
    found: list[list[str]] = []

    async def act(run: Run, updates: Updates) -> None:
        found.append([t.id for t in await run.load_related()])
        await updates.status(TaskState.COMPLETED)

    entry, other_agent = await world.add_agent(act), await world.add_agent(complete)
    own = [(await soon(send_message(world.call(entry), request()))).record.id for _ in range(2)]
    bobs = (await soon(send_message(world.call(entry, "bob"), request()))).record.id
    elsewhere = (await soon(send_message(world.call(other_agent), request()))).record.id
    references = [own[1], bobs, "absent", elsewhere, own[0]]
    await soon(send_message(world.call(entry), request(references=references)))
    assert found[-1] == [own[1], own[0]]


async def test_many_runs_at_once(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await asyncio.sleep(0)
        await updates.artifact(chunk(run.text, "x"))
        await asyncio.sleep(0)
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    call = world.call(entry)
    answers = await soon(asyncio.gather(*(send_message(call, request(f"text {n}")) for n in range(200))))
    for n, answer in enumerate(answers):
        (artifact,) = json.loads(answer.payload())["task"]["artifacts"]
        assert artifact["parts"] == [{"text": f"text {n}"}]
    assert world.hosts[0].executions == {}
    await check_everything(world)


async def test_what_happens_often_is_not_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    entry = await world.add_agent(complete)
    caplog.clear()
    await soon(send_message(world.call(entry), request()))
    assert [r.name for r in caplog.records if r.name.startswith(("tasks_app", "agents"))] == []
