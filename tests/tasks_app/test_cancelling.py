"""CancelTask (§3.1.5): with code that obeys, that is faster, and that does not listen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable

import pytest

from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.errors import TaskNotCancelableError, TaskNotFoundError
from protocol.requests import CancelTaskRequest
from protocol.states import TaskState
from tasks_app.execution.claiming import claim_task
from tasks_app.execution.host import Host
from tasks_app.execution.missed import hear_missed
from tasks_app.journal import leases
from tasks_app.operations import cancel_task, send_message
from tasks_app.tables.record import TaskRecord
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import Act, World, chunk, nothing, request, say, soon, until

pytestmark = pytest.mark.spec("3.1.5")


async def hold(run: Run, updates: Updates) -> None:
    """Work until stopped."""
    await updates.status(TaskState.WORKING)
    await asyncio.Event().wait()


async def start(world: World, act: Act = hold, cancel: Act = nothing, **fields: object) -> tuple[AgentEntry, str]:
    """A running task of an agent; (agent, task id)."""
    fields = {"cancel_grace_seconds": 5} | fields
    entry = await world.add_agent(act, cancel, **fields)
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    return entry, answer.record.id


def cancelling(world: World, entry: AgentEntry, task_id: str, host: Host | None = None) -> Awaitable[TaskRecord]:
    return soon(cancel_task(world.call(entry, host=host), CancelTaskRequest(id=task_id)))


async def test_code_that_lets_itself_be_stopped(world: World) -> None:
    stopped = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    entry, task_id = await start(world, act)
    record = await cancelling(world, entry, task_id)
    assert record.state is TaskState.CANCELED
    assert stopped.is_set()
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]
    stored = await world.load(task_id)
    assert (stored.render(), stored.worker) == (record.render(), world.hosts[0].origin)
    await check_everything(world)


async def test_the_agents_cancel_says_what_there_is_to_say(world: World) -> None:
    runs: list[str] = []

    async def cancel(run: Run, updates: Updates) -> None:
        runs.append(run.task_id)
        await updates.artifact(chunk("what there was", "x"))
        await updates.status(TaskState.CANCELED, say("stopped half way"))

    entry, task_id = await start(world, hold, cancel)
    record = await cancelling(world, entry, task_id)
    assert (record.state, said(record.status)) == (TaskState.CANCELED, "stopped half way")
    assert runs == [task_id]
    assert await events_of(world, task_id) == [
        ("WORKING",), ("x", "what there was", False, False), ("CANCELED",),
    ]  # fmt: skip


async def test_a_cancel_that_raises_is_no_obstacle(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def cancel(run: Run, updates: Updates) -> None:
        raise RuntimeError("password=hunter2")

    entry, task_id = await start(world, hold, cancel)
    record = await cancelling(world, entry, task_id)
    assert record.state is TaskState.CANCELED
    assert "hunter2" in caplog.text
    assert await world.query("SELECT 1 FROM tasks_app_event WHERE body LIKE '%%hunter2%%'") == []


async def test_a_cancel_that_hangs_has_its_grace_time(world: World) -> None:
    async def cancel(run: Run, updates: Updates) -> None:
        await asyncio.Event().wait()

    entry, task_id = await start(world, hold, cancel, cancel_grace_seconds=1)
    record = await cancelling(world, entry, task_id)
    assert record.state is TaskState.CANCELED
    await until(lambda: not world.hosts[0].executions, "the run to end")
    await check_everything(world)


async def test_code_that_completes_while_it_is_cancelled(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await updates.status(TaskState.COMPLETED, say("just made it"))

    entry, task_id = await start(world, act)
    with pytest.raises(TaskNotCancelableError) as refused:
        await cancelling(world, entry, task_id)
    assert refused.value.metadata == {"taskId": task_id, "state": "TASK_STATE_COMPLETED"}
    assert await events_of(world, task_id) == [("WORKING",), ("COMPLETED",)]
    await check_everything(world)


async def test_code_that_swallows_the_cancellation_and_returns(world: World) -> None:
    """It obeyed, in the way that many people write it: that is a cancelled task, not a failed one."""

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    calls: list[str] = []

    async def cancel(run: Run, updates: Updates) -> None:
        calls.append(run.task_id)

    entry, task_id = await start(world, act, cancel)
    record = await cancelling(world, entry, task_id)
    assert record.state is TaskState.CANCELED
    assert calls == [task_id]
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]


async def test_code_that_fails_on_being_cancelled(world: World) -> None:
    """What breaks in its clean-up was stopped all the same."""

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("connection closed")

    entry, task_id = await start(world, act)
    record = await cancelling(world, entry, task_id)
    assert record.state is TaskState.CANCELED
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]


async def test_code_that_does_not_listen_is_fenced_off(world: World) -> None:
    stop = asyncio.Event()
    late: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue
        for update in (
            updates.status(TaskState.COMPLETED, say("at last")),
            updates.artifact(chunk("late")),
            updates.status(TaskState.WORKING),
        ):
            try:
                await update
            except BaseException as error:
                late.append(type(error).__name__)

    entry, task_id = await start(world, act, cancel_grace_seconds=1)
    try:
        record = await cancelling(world, entry, task_id)
        assert record.state is TaskState.CANCELED
        assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]
        before = await world.dump()
    finally:
        stop.set()
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert late == ["CancelledError"] * 3
    assert await world.dump() == before
    await check_everything(world)


async def test_code_that_keeps_talking_is_fenced_off(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        n = 0
        while True:
            try:
                await updates.artifact(chunk(f"{n},", "x"), append=n > 0)
                n += 1
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                if world.hosts[0].executions[run.task_id].fenced:
                    raise

    entry, task_id = await start(world, act, cancel_grace_seconds=1)
    record = await cancelling(world, entry, task_id)
    assert record.state is TaskState.CANCELED
    await until(lambda: not world.hosts[0].executions, "the run to end")
    await check_everything(world)
    (artifact,) = json.loads((await world.load(task_id)).render())["artifacts"]
    texts = "".join(p["text"] for p in artifact["parts"])
    assert texts == "".join(f"{n}," for n in range(texts.count(","))), "what was stored has no holes"


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
async def test_an_interrupted_task_is_cancelled_without_its_agent(world: World, state: TaskState) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(state, say("well?", "a-1"))

    entry, task_id = await start(world, act)
    await until(lambda: not world.hosts[0].executions, "the run to end")
    record = await cancelling(world, entry, task_id)
    assert record.state is TaskState.CANCELED
    assert json.loads(record.history[-1])["messageId"] == "a-1", "the question goes into the history"
    assert await events_of(world, task_id) == [(state.name,), ("CANCELED",)]
    await check_everything(world)


@pytest.mark.parametrize(
    "state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED], ids=lambda s: s.name
)
async def test_an_ended_task_cannot_be_cancelled(world: World, state: TaskState) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(state)

    entry, task_id = await start(world, act)
    await until(lambda: not world.hosts[0].executions, "the run to end")
    before = await world.dump()
    with pytest.raises(TaskNotCancelableError) as refused:
        await cancelling(world, entry, task_id)
    assert refused.value.metadata == {"taskId": task_id, "state": str(state)}
    assert await world.dump() == before


async def test_what_a_caller_may_not_see_cannot_be_cancelled(world: World) -> None:
    entry, task_id = await start(world)
    other = await world.add_agent()
    before = await world.dump()
    for call in (world.call(entry, "bob"), world.call(other)):
        with pytest.raises(TaskNotFoundError):
            await soon(cancel_task(call, CancelTaskRequest(id=task_id)))
    assert await world.dump() == before
    assert task_id in world.hosts[0].executions


async def test_many_cancel_one_task(world: World) -> None:
    entry, task_id = await start(world)
    outcomes = await asyncio.gather(*(cancelling(world, entry, task_id) for _ in range(20)), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, TaskRecord):
            assert outcome.state is TaskState.CANCELED
        else:
            assert isinstance(outcome, TaskNotCancelableError)
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]
    await check_everything(world)


async def test_cancel_at_any_moment_of_a_short_run(world: World) -> None:
    """Whatever is faster: exactly one end, and the answer agrees with it."""

    async def act(run: Run, updates: Updates) -> None:
        for n in range(int(run.text)):
            await asyncio.sleep(0)
            await updates.artifact(chunk(f"{n}", "x"), append=n > 0)
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act, cancel_grace_seconds=5)
    call = world.call(entry)

    async def race(length: int, delay: int) -> None:
        answer = await send_message(call, request(str(length), immediately=True))
        for _ in range(delay):
            await asyncio.sleep(0)
        (outcome,) = await asyncio.gather(
            cancel_task(call, CancelTaskRequest(id=answer.record.id)), return_exceptions=True
        )
        state = (await world.load(answer.record.id)).state
        if isinstance(outcome, TaskNotCancelableError):
            assert (outcome.metadata["state"], state) == ("TASK_STATE_COMPLETED", TaskState.COMPLETED)
        else:
            assert isinstance(outcome, TaskRecord)
            assert (outcome.state, state) == (TaskState.CANCELED, TaskState.CANCELED)

    await soon(asyncio.gather(*(race(n % 7, n % 11) for n in range(150))))
    await until(lambda: not world.hosts[0].executions, "the runs to end")
    await check_everything(world)


async def test_cancel_through_another_process(world: World) -> None:
    other = await world.start_host()
    entry, task_id = await start(world)
    began = asyncio.get_running_loop().time()
    record = await cancelling(world, entry, task_id, host=other)
    assert record.state is TaskState.CANCELED
    assert asyncio.get_running_loop().time() - began < 3, "long before its grace time"
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]
    assert await world.query("SELECT cancel_requested_at IS NOT NULL FROM tasks_app_task") == [(True,)]


async def test_cancel_of_code_in_another_process_that_does_not_listen(world: World) -> None:
    other = await world.start_host()
    stop = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue
        await updates.status(TaskState.COMPLETED)

    entry, task_id = await start(world, act, cancel_grace_seconds=1)
    try:
        record = await cancelling(world, entry, task_id, host=other)
    finally:
        stop.set()
    assert record.state is TaskState.CANCELED
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]
    await check_everything(world)


async def test_cancel_before_a_worker_has_claimed_the_task(world: World) -> None:
    worker = await world.start_host("worker")
    entry = await world.add_agent(execution="worker")
    answer = await soon(send_message(world.call(entry), request(immediately=True)))
    assert answer.record.worker is None
    record = await cancelling(world, entry, answer.record.id)
    assert record.state is TaskState.CANCELED
    assert await claim_task(worker, record.id, answer.record.attempt) is None, "its doorbell comes too late"
    assert await events_of(world, record.id) == [("CANCELED",)]


async def test_cancel_just_as_a_worker_claims_the_task(world: World) -> None:
    """The request may come to the worker after it has claimed the row and before it runs the code."""
    worker = await world.start_host("worker")
    entry = await world.add_agent(executor="hold", execution="worker")
    for turns in range(12):
        answer = await soon(send_message(world.call(entry), request(immediately=True)))
        claiming = asyncio.create_task(claim_task(worker, answer.record.id, answer.record.attempt))
        for _ in range(turns * 3):
            await asyncio.sleep(0)
        began = asyncio.get_running_loop().time()
        record = await cancelling(world, entry, answer.record.id)
        assert asyncio.get_running_loop().time() - began < 3, "long before its grace time"
        assert record.state is TaskState.CANCELED
        await soon(claiming)
    await until(lambda: not worker.executions, "the runs to end")
    await check_everything(world)


async def test_a_request_that_the_process_did_not_hear_is_found(world: World) -> None:
    """Its LISTEN connection was down when somebody asked."""
    _, task_id = await start(world)
    await until(lambda: world.hosts[0].executions[task_id].record.state is TaskState.WORKING, "the task to be at work")
    await world.hosts[0].listener.stop()
    other = await world.start_host()
    assert await leases.request_cancels(other.store, [(task_id, 1)]) == {(task_id, 1): True}
    assert (await world.load(task_id)).state is TaskState.WORKING
    await hear_missed(world.hosts[0])
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert await events_of(world, task_id) == [("WORKING",), ("CANCELED",)]
    await check_everything(world)


async def test_code_that_keeps_talking_in_another_process_is_fenced_off(world: World) -> None:
    """It writes faster than the process that was asked to cancel it could end its task."""

    async def act(run: Run, updates: Updates) -> None:
        while True:
            try:
                await updates.artifact(chunk(".", "x"), append=True)
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if world.hosts[0].executions[run.task_id].fenced:
                    raise

    other = await world.start_host()
    entry, task_id = await start(world, act, cancel_grace_seconds=1)
    record = await cancelling(world, entry, task_id, other)
    assert record.state is TaskState.CANCELED
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert (await world.load(task_id)).version == record.version
    await check_everything(world)
