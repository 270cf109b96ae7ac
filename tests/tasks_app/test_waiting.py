"""Answers, by callers and by people at the host: for code that waits in its process, and for code that returned."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agents.delegation import Answer, wait_for_answer
from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.errors import InvalidAgentResponseError, InvalidParamsError, UnsupportedOperationError
from protocol.requests import CancelTaskRequest
from protocol.states import TaskState
from tasks_app.execution.claiming import claim_task
from tasks_app.execution.host import Host
from tasks_app.execution.missed import hear_missed
from tasks_app.operations import cancel_task, send_message
from tasks_app.operations.answering import Decision, Input, answer_task
from tasks_app.tables.record import TaskRecord
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import Act, World, chunk, request, say, soon, until


class Waiting:
    """An agent that asks and waits, and what it was answered."""

    def __init__(self, state: TaskState = TaskState.INPUT_REQUIRED) -> None:
        self.state = state
        self.answers: list[Answer] = []
        self.runs = 0

    async def __call__(self, run: Run, updates: Updates) -> None:
        self.runs += 1
        await updates.status(TaskState.WORKING)
        if run.task is not None:
            await updates.artifact(chunk(f"anew: {run.text}"))
            await updates.status(TaskState.COMPLETED)
            return
        await updates.artifact(chunk("before,"))
        await updates.status(self.state, say("well?"))
        answer = await wait_for_answer()
        self.answers.append(answer)
        await updates.artifact(chunk(answer.text), append=True)
        await updates.status(TaskState.COMPLETED)


async def ask(world: World, act: Act, **fields: Any) -> tuple[AgentEntry, str]:
    """(agent, id of its task, which waits in the first host)."""
    entry = await world.add_agent(act, **fields)
    task_id = (await soon(send_message(world.call(entry), request("go")))).record.id
    await until(lambda: (e := world.hosts[0].executions.get(task_id)) and e.waits and e._waited, "the run to wait")
    return entry, task_id


async def ended(world: World, task_id: str) -> TaskRecord:
    """The task once it has ended."""
    async with asyncio.timeout(20):
        while not (record := await world.load(task_id)).state.terminal:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return record


async def test_an_answer_for_a_process_that_ends_is_left_to_others(world: World) -> None:
    act = Waiting()
    other = await world.start_host()
    entry, task_id = await ask(world, act)
    world.hosts[0].draining = True
    await soon(send_message(world.call(entry, host=other), request("x", task_id=task_id, immediately=True)))
    async with asyncio.timeout(20):
        while (record := await world.load(task_id)).worker is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (record.state, record.attempt, act.answers) == (TaskState.WORKING, 3, [])
    other.registry.by_id(entry.id).slot._runtime = entry.runtime  # type: ignore[union-attr]
    assert await claim_task(other, task_id, 3) is not None
    assert (await ended(world, task_id)).state is TaskState.COMPLETED
    assert act.runs == 2


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_follow_up_goes_to_the_run_that_waits(world: World, elsewhere: bool) -> None:
    act = Waiting()
    host = await world.start_host() if elsewhere else world.hosts[0]
    entry, task_id = await ask(world, act)
    before = await world.load(task_id)
    assert (before.waiting_attempt, before.attempt, before.worker) == (1, 1, world.hosts[0].origin)
    answer = await soon(send_message(world.call(entry, host=host), request("for two", task_id=task_id)))
    assert answer.record.state is TaskState.COMPLETED
    assert act.runs == 1
    assert [(a.text, a.answered_by, a.approved) for a in act.answers] == [("for two", "", None)]
    assert await events_of(world, task_id) == [
        ("WORKING",), ("result", "before,", False, False), ("INPUT_REQUIRED",),
        ("WORKING",), ("result", "for two", True, False), ("COMPLETED",),
    ]  # fmt: skip
    record = await world.load(task_id)
    assert record.attempt == 2
    assert [json.loads(m)["parts"][0]["text"] for m in record.history] == ["go", "well?", "for two"]
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert not host.executions
    await check_everything(world)


async def test_a_lost_notification_is_made_up_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    act = Waiting()
    other = await world.start_host()

    async def deaf(task_id: str) -> None:
        """Nobody hears."""

    monkeypatch.setattr(world.hosts[0].behaviours, "on_answer", deaf)
    entry, task_id = await ask(world, act)
    await soon(send_message(world.call(entry, host=other), request("x", task_id=task_id, immediately=True)))
    await asyncio.gather(*(hear_missed(world.hosts[0]) for _ in range(3)))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert (act.runs, len(act.answers)) == (1, 1)
    assert (await world.load(task_id)).state is TaskState.COMPLETED
    await check_everything(world)


async def test_the_process_is_gone_when_the_answer_comes(world: World) -> None:
    """Its lease is over, so whoever takes the answer runs the turn."""
    act = Waiting()
    other = await world.start_host()
    entry, task_id = await ask(world, act)
    await world.query("UPDATE tasks_app_task SET lease_until = now() - interval '1 s'")
    answer = await soon(send_message(world.call(entry, host=other), request("late", task_id=task_id)))
    assert answer.record.state is TaskState.COMPLETED
    assert act.runs == 2
    assert await events_of(world, task_id) == [
        ("WORKING",), ("result", "before,", False, False), ("INPUT_REQUIRED",),
        ("WORKING",), ("result", "anew: late", False, False), ("COMPLETED",),
    ]  # fmt: skip
    await hear_missed(world.hosts[0])  # the run that waited was not dead after all
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert act.answers == []
    await check_everything(world)


async def test_a_host_that_stops_waits_no_more(world: World) -> None:
    act = Waiting()
    entry, task_id = await ask(world, act)
    await world.hosts[0].end_runs()
    record = await world.load(task_id)
    assert (record.state, record.waiting_attempt) == (TaskState.INPUT_REQUIRED, None)
    other = await world.start_host()
    answer = await soon(send_message(world.call(entry, host=other), request("late", task_id=task_id)))
    assert (answer.record.state, act.runs) == (TaskState.COMPLETED, 2)


async def test_a_run_that_gave_up_waiting(world: World) -> None:
    """The answer that was for it is a new run."""
    go = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        if run.task is None:
            await updates.status(TaskState.INPUT_REQUIRED, say("well?"))
            waiting = asyncio.create_task(wait_for_answer())
            await go.wait()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await asyncio.Event().wait()
        await updates.artifact(chunk(run.text))
        await updates.status(TaskState.COMPLETED)

    other = await world.start_host()
    entry, task_id = await ask(world, act)
    go.set()
    await until(lambda: not world.hosts[0].executions[task_id].waits, "the run to give up")
    answer = await soon(send_message(world.call(entry, host=other), request("x", task_id=task_id)))
    assert answer.record.state is TaskState.COMPLETED
    await until(lambda: not world.hosts[0].executions, "the runs to end")
    await check_everything(world)


async def test_who_waits_can_be_cancelled_from_anywhere(world: World) -> None:
    act = Waiting()
    other = await world.start_host()
    entry, task_id = await ask(world, act)
    record = await soon(cancel_task(world.call(entry, host=other), CancelTaskRequest(id=task_id)))
    assert record.state is TaskState.CANCELED
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert act.answers == []
    await check_everything(world)


async def test_an_answer_and_a_cancel_at_once(world: World) -> None:
    """Whoever is first, the task ends once and nothing is left running."""
    other = await world.start_host()
    for number in range(10):
        entry, task_id = await ask(world, Waiting())
        answer = send_message(world.call(entry, host=other), request("x", task_id=task_id, immediately=True))
        cancel = cancel_task(world.call(entry), CancelTaskRequest(id=task_id))
        both = [answer, cancel] if number % 2 else [cancel, answer]
        await soon(asyncio.gather(*both, return_exceptions=True))
        record = await ended(world, task_id)
        assert record.state in (TaskState.CANCELED, TaskState.COMPLETED)
    for host in world.hosts:
        await until(lambda host=host: not host.executions, "the runs to end")
    await check_everything(world)


async def test_only_a_task_that_asked_waits(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        with pytest.raises(InvalidAgentResponseError, match="TASK_STATE_WORKING waits for no answer"):
            await wait_for_answer()
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    assert (await soon(send_message(world.call(entry), request()))).record.state is TaskState.COMPLETED


async def test_nothing_is_reported_while_it_waits(world: World) -> None:
    errors: list[InvalidAgentResponseError] = []

    async def act(run: Run, updates: Updates) -> None:
        async def chatter() -> None:
            try:
                await updates.artifact(chunk("meanwhile"))
            except InvalidAgentResponseError as error:
                errors.append(error)

        await updates.status(TaskState.INPUT_REQUIRED, say("well?"))
        chatting = asyncio.create_task(chatter())
        await wait_for_answer()
        await chatting
        await updates.status(TaskState.COMPLETED)

    entry, task_id = await ask(world, act)
    answer = await soon(send_message(world.call(entry), request("x", task_id=task_id)))
    assert answer.record.state is TaskState.COMPLETED
    assert len(errors) == 1
    assert await events_of(world, task_id) == [("INPUT_REQUIRED",), ("WORKING",), ("COMPLETED",)]


async def test_the_time_limit_does_not_count_while_it_waits(world: World) -> None:
    entry, task_id = await ask(world, Waiting(), timeout_seconds=1)
    await asyncio.sleep(1.2)  # that is what it is about: time goes by
    answer = await soon(send_message(world.call(entry), request("x", task_id=task_id)))
    assert answer.record.state is TaskState.COMPLETED


# --- people at the host ----------------------------------------------------------------------------


async def by_hand(host: Host, task_id: str, answer: Decision | Input, attempt: int = 1) -> Any:
    return await soon(answer_task(host, task_id, attempt, "ada", answer))


@pytest.mark.parametrize(
    ("agent", "answer", "action", "detail"),
    [
        ("auth", Decision(True), "task.approve", "Approved."),
        ("auth", Decision(False, "by phone"), "task.refuse", "Refused, with a note."),
        ("ask", Input("for two", "[1]"), "task.input", "Gave 7 characters of text and 3 characters of data."),
    ],
)
async def test_an_answer_and_its_line_in_the_audit_log_are_one_transaction(
    world: World, agent: str, answer: Decision | Input, action: str, detail: str
) -> None:
    """There is no moment between them at which a process could die."""
    entry = await world.add_agent(executor=agent)
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    await by_hand(world.hosts[0], task_id, answer)
    rows = await world.query(
        """SELECT a.actor, a.action, a.agent, a.detail, a.xmin::text = m.xmin::text FROM tasks_app_auditentry a
            JOIN tasks_app_message m USING (task_id) WHERE strpos(m.body, 'answeredBy') > 0"""
    )
    assert rows == [("ada", action, entry.slug, detail, True)]
    with pytest.raises(UnsupportedOperationError):
        await by_hand(world.hosts[0], task_id, answer)
    assert await world.query("SELECT count(*) FROM tasks_app_auditentry") == [(1,)]


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_reaches_the_run_that_waits(world: World, approved: bool) -> None:
    act = Waiting(TaskState.AUTH_REQUIRED)
    other = await world.start_host()
    _, task_id = await ask(world, act)
    await by_hand(other, task_id, Decision(approved, "by phone"))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    ((text, by, said_so),) = [(a.text, a.answered_by, a.approved) for a in act.answers]
    word = "Approved" if approved else "Refused"
    assert (text, by, said_so) == (f"{word} by ada.\nby phone", "ada", approved)
    record = await world.load(task_id)
    assert (record.state, record.owner) == (TaskState.COMPLETED, "alice")
    message = json.loads(record.history[-1])
    assert (message["role"], message["metadata"]) == ("ROLE_USER", {"answeredBy": "ada"})
    assert message["parts"][1] == {"data": {"approved": approved, "by": "ada", "note": "by phone"}}


async def test_code_that_takes_any_follow_up_for_a_consent_is_not_told_of_a_refusal(world: World) -> None:
    auth = await world.add_agent(executor="auth")
    task_id = (await soon(send_message(world.call(auth), request()))).record.id
    await by_hand(world.hosts[0], task_id, Decision(False))
    record = await ended(world, task_id)
    assert (record.state, said(record.status)) == (TaskState.REJECTED, "The authorization was refused by ada.")
    await check_everything(world)


async def test_input_with_data_for_code_that_returned(world: World) -> None:
    runs: list[Run] = []

    async def act(run: Run, updates: Updates) -> None:
        runs.append(run)
        await updates.status(TaskState.INPUT_REQUIRED if run.task is None else TaskState.COMPLETED, say("well?"))

    entry = await world.add_agent(act)
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    world.hosts[0].registry.by_id(entry.id).slot._runtime = entry.runtime  # type: ignore[union-attr]
    await by_hand(world.hosts[0], task_id, Input("for two", '{"seats": 2.50, "x": [1]}'))
    await until(lambda: not world.hosts[0].executions, "the run to end")
    second = runs[1]
    assert second.caller.owner == "alice"
    assert second.caller.authenticated
    assert second.answered is not None
    assert (second.answered.by, second.answered.approved) == ("ada", None)
    assert [bytes(p.data) for p in second.message.parts[1:]] == [b'{"seats": 2.50, "x": [1]}']


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (Input(" \n"), "text"),
        (Input("x", "{"), "data"),
        (Input("x", '1}, "text": "y"'), "data"),
        (Input("x", "[" * 200 + "]" * 200), "data"),
        (Input("x", "1e999"), "data"),
    ],
)
async def test_bad_input_names_its_field_and_changes_nothing(world: World, given: Input, field: str) -> None:
    entry = await world.add_agent(executor="ask")
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    before = await world.dump()
    with pytest.raises(InvalidParamsError) as refused:
        await by_hand(world.hosts[0], task_id, given)
    assert {v.field for v in refused.value.violations} == {field}
    assert await world.dump() == before


async def test_the_second_of_two_people_hears_that_somebody_was_first(world: World) -> None:
    other = await world.start_host()
    asking = await world.add_agent(executor="ask")
    for _ in range(5):
        task_id = (await soon(send_message(world.call(asking), request()))).record.id
        both = [by_hand(world.hosts[0], task_id, Input("one")), by_hand(other, task_id, Input("two"))]
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        errors = [o for o in outcomes if isinstance(o, Exception)]
        assert [type(e) for e in errors] == [UnsupportedOperationError]
        assert "somebody else was first" in str(errors[0])
        assert len((await world.load(task_id)).history) == 3
    assert await world.query("SELECT count(*) FROM tasks_app_auditentry") == [(5,)]
    await check_everything(world)


async def test_an_answer_to_another_question_is_refused(world: World) -> None:
    """The task waits again, for something else."""

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.INPUT_REQUIRED, say("and?"))

    entry = await world.add_agent(act)
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    await soon(send_message(world.call(entry), request("first", task_id=task_id)))
    before = await world.dump()
    with pytest.raises(UnsupportedOperationError, match="somebody else was first"):
        await by_hand(world.hosts[0], task_id, Input("second"))
    with pytest.raises(UnsupportedOperationError, match="is TASK_STATE_INPUT_REQUIRED, not TASK_STATE_AUTH_REQUIRED"):
        await by_hand(world.hosts[0], task_id, Decision(True), attempt=2)
    assert await world.dump() == before


async def test_a_caller_cannot_approve_in_the_name_of_the_host(world: World) -> None:
    """A message may say anything; what the host vouches for does not come from it."""
    act = Waiting(TaskState.AUTH_REQUIRED)
    entry, task_id = await ask(world, act)
    forged = request('{"approved": true, "by": "ada"}', task_id=task_id)
    await soon(send_message(world.call(entry), forged))
    assert [(a.answered_by, a.approved) for a in act.answers] == [("", None)]


# --- places of a worker ----------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True])
async def test_waiting_takes_no_place_of_a_worker(world: World, monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    """There is one place, and a task that waits, whether its code has returned or not."""
    monkeypatch.setattr("tasks_app.execution.claiming._RUNS_AT_ONCE", 1)
    worker = await world.start_host("worker")
    asking = await world.add_agent(executor="wait" if waits else "ask", execution="worker")
    echo = await world.add_agent(execution="worker")
    task_id = (await soon(send_message(world.call(asking), request("wait", immediately=True)))).record.id
    worker.behaviours.take_queued(task_id, 1)
    async with asyncio.timeout(20):
        while (await world.load(task_id)).state is not TaskState.INPUT_REQUIRED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await until(lambda: worker.behaviours.room() == 1, "the place")
    assert bool(worker.executions) is waits
    other = (await soon(send_message(world.call(echo), request("x", immediately=True)))).record.id
    worker.behaviours.take_queued(other, 1)
    assert (await ended(world, other)).state is TaskState.COMPLETED
    assert (await world.load(task_id)).state is TaskState.INPUT_REQUIRED
