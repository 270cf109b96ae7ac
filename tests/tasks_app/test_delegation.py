"""Tasks that agents delegate to other agents of the host, and what becomes of them when their parent ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb

from agents.delegation import Answer, DelegationError, NoRunError, delegate, delegate_stream, wait_for_answer
from agents.models import Agent
from agents.registry import AgentEntry
from agents.runtimes.base import Caller, Run, Updates
from agents.threads import in_thread
from protocol.errors import InvalidAgentResponseError
from protocol.requests import CancelTaskRequest
from protocol.states import TaskState
from tasks_app.execution.cascade import cancel_orphans
from tasks_app.execution.claiming import claim_task
from tasks_app.operations import Call, cancel_task, send_message
from tasks_app.operations.delegating import MAX_DEPTH
from tests.tasks_app.checks import check_everything, events_of, said
from tests.tasks_app.world import World, chunk, request, say, soon, until

STATE = "TASK_STATE_"
_CHILDREN = "SELECT id, state, owner, context_id, dialect, attempt FROM tasks_app_task WHERE parent_id = %s ORDER BY id"


async def hold(run: Run, updates: Updates) -> None:
    await updates.status(TaskState.WORKING)
    await asyncio.Event().wait()


def relay(slug: str) -> Any:
    """An agent that has another one do the work, and says how that went."""

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            task = await delegate(slug, run.text)
        except DelegationError as error:
            await updates.status(TaskState.FAILED, say(f"{error.reason}: {error}"))
            return
        text = "".join(part.text for artifact in task.artifacts for part in artifact.parts)
        await updates.artifact(chunk(f"{pb.TaskState.Name(task.status.state)} {text}"))
        await updates.status(TaskState.COMPLETED)

    return act


async def start(world: World, entry: AgentEntry, text: str = "hi", **fields: Any) -> str:
    """The id of a new task, once it is WORKING."""
    answer = await soon(send_message(world.call(entry, **fields), request(text, immediately=True)))
    return answer.record.id


def known(world: World, entry: AgentEntry) -> None:
    """Let the hosts' registry, too, find the agent's code."""
    for host in world.hosts:
        found = host.registry.by_id(entry.id)
        assert found is not None
        found.slot._runtime = entry.runtime


async def children(world: World, parent: str) -> list[tuple[Any, ...]]:
    return await world.query(_CHILDREN, [parent])


async def child_of(world: World, parent: str, state: TaskState = TaskState.WORKING) -> str:
    """The id of the only child once it is in a state."""
    async with asyncio.timeout(20):
        while not (found := [c for c in await children(world, parent) if c[1] == state.number]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    ((task_id, *_),) = found
    return task_id


async def wait_for(world: World, task_id: str, state: TaskState) -> None:
    async with asyncio.timeout(20):
        while (record := await world.load(task_id)).state is not state:
            assert not record.state.terminal, record.state
            await asyncio.sleep(0.01)


async def test_a_task_of_the_same_principal_below_the_one_that_delegates(world: World) -> None:
    echo = await world.add_agent()
    entry = await world.add_agent(relay(echo.slug))
    answer = await soon(send_message(world.call(entry), request("do it", context_id="c-1")))
    assert await events_of(world, answer.record.id) == [
        ("WORKING",), ("result", "TASK_STATE_COMPLETED do it", False, False), ("COMPLETED",),
    ]  # fmt: skip
    ((child, *row),) = await children(world, answer.record.id)
    assert row == [TaskState.COMPLETED.number, "alice", "c-1", "HOST/1.0", 1]
    assert json.loads((await world.load(child)).history[0])["parts"] == [{"text": "do it"}]
    await check_everything(world)


async def test_a_stream_of_what_the_other_agent_does(world: World) -> None:
    heard: list[str] = []
    steps = await world.add_agent(executor="steps")

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        async for event in delegate_stream(steps.slug, "steps 2 30"):
            heard.append(str(event.WhichOneof("payload")))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert answer.record.state is TaskState.COMPLETED
    assert heard[0] == "task"
    assert [kind for kind in heard[1:] if kind != "status_update"] == ["artifact_update"] * 2
    assert heard[-1] == "status_update"


async def test_what_an_interrupted_run_has_left_behind_delegates_until_its_task_goes_on(world: World) -> None:
    """It cannot wait for the answer, which begins another run."""
    echo = await world.add_agent()
    go, asked = [asyncio.Event(), asyncio.Event()], asyncio.Event()
    left: list[asyncio.Task[None]] = []
    heard: list[str] = []

    async def go_on() -> None:
        await go[0].wait()
        task = await delegate(echo.slug, "left behind")
        heard.append(pb.TaskState.Name(task.status.state))
        with pytest.raises(InvalidAgentResponseError, match=r"^A run that has ended waits for no answer\.$"):
            await wait_for_answer()
        asked.set()
        await go[1].wait()
        with pytest.raises(DelegationError) as refused:
            await delegate(echo.slug, "too late")
        heard.append(refused.value.reason)

    async def act(run: Run, updates: Updates) -> None:
        if run.task is None:
            left.append(asyncio.create_task(go_on()))
            await updates.status(TaskState.INPUT_REQUIRED)
        else:
            await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    parent = (await soon(send_message(world.call(entry), request()))).record
    await until(lambda: not world.hosts[0].executions, "the end of the run")
    assert parent.state is TaskState.INPUT_REQUIRED
    go[0].set()
    await soon(asked.wait())
    assert heard == [f"{STATE}COMPLETED"]
    ((child, state, *_),) = await children(world, parent.id)
    assert (state, (await world.load(parent.id)).waiting_attempt) == (TaskState.COMPLETED.number, None)
    await soon(send_message(world.call(entry), request(task_id=parent.id)))
    go[1].set()
    await soon(left[0])
    assert heard[1:] == ["RUN_ENDED"]
    assert [c[0] for c in await children(world, parent.id)] == [child]
    await check_everything(world)


async def test_what_a_run_has_left_behind_waits_for_nothing_after_the_end_of_its_task(world: World) -> None:
    over = asyncio.Event()
    left: list[asyncio.Task[Answer]] = []

    async def go_on() -> Answer:
        await over.wait()
        return await wait_for_answer()

    async def act(run: Run, updates: Updates) -> None:
        left.append(asyncio.create_task(go_on()))
        await updates.status(TaskState.COMPLETED)

    await soon(send_message(world.call(await world.add_agent(act)), request()))
    await until(lambda: not world.hosts[0].executions, "the end of the run")
    over.set()
    with pytest.raises(InvalidAgentResponseError, match=r"^A run that has ended waits for no answer\.$"):
        await soon(left[0])


async def test_a_question_comes_back_and_is_answered(world: World) -> None:
    ask = await world.add_agent(executor="ask")
    states: list[int] = []

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        first = await delegate(ask.slug, pb.Message(parts=[pb.Part(text="a table")], context_id="other"))
        second = await delegate(ask.slug, pb.Message(parts=[pb.Part(text="for two")], task_id=first.id))
        states.extend([first.status.state, second.status.state])
        assert (first.id, first.context_id) == (second.id, "other")
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert answer.record.state is TaskState.COMPLETED
    assert states == [TaskState.INPUT_REQUIRED.number, TaskState.COMPLETED.number]
    assert len(await children(world, answer.record.id)) == 1


async def test_an_answer_without_a_task_is_a_task_here(world: World) -> None:
    direct = await world.add_agent(executor="direct")
    found: list[pb.Task] = []

    async def act(run: Run, updates: Updates) -> None:
        found.append(await asyncio.create_task(delegate(direct.slug, "hello")))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    await soon(send_message(world.call(entry), request()))
    assert pb.TaskState.Name(found[0].status.state) == f"{STATE}COMPLETED"
    assert found[0].status.message.parts[0].text == "hello"


@pytest.mark.parametrize(
    ("fields", "caller", "reason"),
    [
        ({"enabled": False}, Caller("alice", authenticated=True), "AGENT_NOT_FOUND"),
        ({}, Caller("anonymous"), "PERMISSION_DENIED"),
        ({"default_input_modes": ["image/png"]}, Caller("alice", authenticated=True), "CONTENT_TYPE_NOT_SUPPORTED"),
    ],
)
async def test_the_callers_rights_decide(world: World, fields: Any, caller: Caller, reason: str) -> None:
    other = await world.add_agent(**fields) if "enabled" not in fields else None
    slug = other.slug if other else "nobody"
    entry = await world.add_agent(relay(slug), open=True)
    call = Call(world.hosts[0], entry, caller, "JSONRPC/1.0")
    answer = await soon(send_message(call, request()))
    assert said(answer.record.status).startswith(f"{reason}: Nothing was delegated to '{slug}'. ")
    assert await children(world, answer.record.id) == []


async def test_a_disabled_agent_is_not_there(world: World) -> None:
    other = await world.add_agent()
    entry = await world.add_agent(relay(other.slug))
    await in_thread(lambda: Agent.objects.filter(pk=other.id).update(enabled=False))
    await world.hosts[0].registry.load()
    answer = await soon(send_message(world.call(entry), request()))
    assert said(answer.record.status) == (
        f"AGENT_NOT_FOUND: Nothing was delegated to '{other.slug}'. The agent does not exist."
    )


async def test_a_message_that_nobody_could_send_names_the_field(world: World) -> None:
    echo = await world.add_agent()
    texts: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        for message in (pb.Message(), pb.Message(message_id="x" * 256, parts=[pb.Part(text="a")])):
            with pytest.raises(DelegationError) as refused:
                await delegate(echo.slug, message)
            texts.append(str(refused.value))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    assert answer.record.state is TaskState.COMPLETED
    assert texts[0] == "The agent sent message parts that are empty."
    assert "message.messageId" in texts[1]
    assert await children(world, answer.record.id) == []


async def test_agents_that_delegate_in_a_circle_come_to_an_end(world: World) -> None:
    """Slugs of a world are numbered: an agent can name itself before it exists."""
    entry = await world.add_agent(relay("agent-1"))
    known(world, entry)
    answer = await soon(send_message(world.call(entry), request()))
    assert answer.record.state is TaskState.COMPLETED
    rows = await world.query("SELECT count(*), count(*) FILTER (WHERE state = 4) FROM tasks_app_task")
    assert rows == [(MAX_DEPTH + 1, 1)]
    ((status,),) = await world.query("SELECT status FROM tasks_app_task WHERE state = 4")
    assert said(status) == (
        "TOO_DEEP: 8 tasks stand above this one, each delegated by the one before: it may not delegate."
    )


async def test_outside_of_a_run_there_is_nobody_to_delegate_for() -> None:
    with pytest.raises(NoRunError, match="only inside of a run"):
        await delegate("echo", "hi")


async def test_what_a_run_left_behind_delegates_nothing_once_it_has_ended(world: World) -> None:
    echo = await world.add_agent()
    left: list[asyncio.Task[pb.Task]] = []
    ended = asyncio.Event()

    async def late() -> pb.Task:
        await ended.wait()
        return await delegate(echo.slug, "late")

    async def act(run: Run, updates: Updates) -> None:
        left.append(asyncio.create_task(late()))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry), request()))
    ended.set()
    with pytest.raises(DelegationError) as refused:
        await soon(left[0])
    assert refused.value.reason == "RUN_ENDED"
    assert await children(world, answer.record.id) == []


async def test_the_parents_deadline_holds_for_the_child(world: World) -> None:
    echo = await world.add_agent()

    async def act(run: Run, updates: Updates) -> None:
        await world.query("UPDATE tasks_app_task SET deadline_at = created_at + interval '90 s'")
        await delegate(echo.slug, "hi")
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    await soon(send_message(world.call(entry), request()))
    rows = await world.query("SELECT count(DISTINCT deadline_at), count(*) FROM tasks_app_task")
    assert rows == [(1, 2)]


# --- the cascade -----------------------------------------------------------------------------------


async def test_a_cancel_reaches_down_to_the_last_child(world: World) -> None:
    leaf = await world.add_agent(executor="hold")
    middle = await world.add_agent(relay(leaf.slug))
    known(world, middle)
    top = await world.add_agent(relay(middle.slug))
    parent = await start(world, top)
    child = await child_of(world, parent)
    grandchild = await child_of(world, child)
    record = await soon(cancel_task(world.call(top), CancelTaskRequest(id=parent)))
    assert record.state is TaskState.CANCELED
    await wait_for(world, child, TaskState.CANCELED)
    await wait_for(world, grandchild, TaskState.CANCELED)
    await until(lambda: not world.hosts[0].executions, "the runs to end")
    await check_everything(world)


async def test_a_queued_child_never_starts(world: World) -> None:
    worker = await world.add_agent(execution="worker")
    entry = await world.add_agent(relay(worker.slug))
    parent = await start(world, entry)
    child = await child_of(world, parent, TaskState.SUBMITTED)
    await soon(cancel_task(world.call(entry), CancelTaskRequest(id=parent)))
    await wait_for(world, child, TaskState.CANCELED)
    host = await world.start_host("worker")
    assert await claim_task(host, child, 1) is None
    assert await events_of(world, child) == [("CANCELED",)]


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.REJECTED])
async def test_a_parent_without_a_result_takes_its_children_along(world: World, state: TaskState) -> None:
    leaf = await world.add_agent(executor="hold")
    go = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        task = asyncio.create_task(delegate(leaf.slug, "hold"))
        await go.wait()
        await updates.status(state)
        await asyncio.gather(task, return_exceptions=True)

    entry = await world.add_agent(act)
    parent = await start(world, entry)
    child = await child_of(world, parent)
    go.set()
    await wait_for(world, child, TaskState.CANCELED)


async def test_a_completed_parent_leaves_its_children_alone(world: World) -> None:
    leaf = await world.add_agent(executor="hold")
    go = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        task = asyncio.create_task(delegate(leaf.slug, "hold"))
        await go.wait()
        await updates.status(TaskState.COMPLETED)
        task.cancel()

    entry = await world.add_agent(act)
    parent = await start(world, entry)
    child = await child_of(world, parent)
    go.set()
    host = world.hosts[0]
    await until(lambda: parent not in host.executions, "everything that the end of the parent brings about to begin")
    assert (await world.load(parent)).state is TaskState.COMPLETED
    await cancel_orphans(host)
    await until(lambda: not host._background, "the end of that")
    assert (await world.load(child)).state is TaskState.WORKING


async def test_what_a_dead_process_left_undone_is_found(world: World) -> None:
    """The parent's end was stored by a process that died before it told anybody."""
    leaf = await world.add_agent(executor="hold")
    entry = await world.add_agent(relay(leaf.slug))
    parent = await start(world, entry)
    child = await child_of(world, parent)
    await world.query(
        "UPDATE tasks_app_task SET state = 5, attempt = attempt + 1, version = version + 1,"
        """ status = '{"state":"TASK_STATE_CANCELED"}', worker = NULL, lease_until = NULL WHERE id = %s""",
        [parent],
    )
    other = await world.start_host()
    for _ in range(2):  # it does no harm to look again
        await cancel_orphans(other)
    await wait_for(world, child, TaskState.CANCELED)
    assert await events_of(world, child) == [("WORKING",), ("CANCELED",)]
