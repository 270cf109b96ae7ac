"""The same message counts once, whoever sends it again and through whichever process (§3.3.1)."""

from __future__ import annotations

import asyncio
import json

import pytest

from agents.runtimes.base import Run, Updates
from protocol.errors import InvalidParamsError
from protocol.states import TaskState
from tasks_app.operations import send_message
from tests.tasks_app.checks import check_everything
from tests.tasks_app.world import PATIENCE, World, ask, chunk, complete, request, soon


@pytest.mark.spec("3.3.1")
async def test_the_same_message_twice_is_one_task(world: World) -> None:
    runs: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        runs.append(run.task_id)
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    call = world.call(entry)
    first = await soon(send_message(call, request("hi", message_id="m-1")))
    before = await world.dump()
    second = await soon(send_message(call, request("hi", message_id="m-1")))
    assert second.payload() == first.payload()
    assert runs == [first.record.id]
    assert await world.dump() == before


async def test_the_same_id_with_other_content_is_refused(world: World) -> None:
    entry = await world.add_agent(complete)
    call = world.call(entry)
    await soon(send_message(call, request("hi", message_id="m-1")))
    before = await world.dump()
    with pytest.raises(InvalidParamsError) as refused:
        await soon(send_message(call, request("ho", message_id="m-1")))
    assert [(v.field, v.description) for v in refused.value.violations] == [
        ("message.messageId", "was used before for a message with other content")
    ]
    assert await world.dump() == before


async def test_the_same_message_of_others_is_another(world: World) -> None:
    entry, other = await world.add_agent(complete), await world.add_agent(complete)
    calls = [world.call(entry), world.call(entry, "bob"), world.call(other)]
    answers = [await soon(send_message(c, request("hi", message_id="m-1"))) for c in calls]
    assert len({a.record.id for a in answers}) == 3


async def test_an_agent_that_wants_every_message_gets_every_one(world: World) -> None:
    entry = await world.add_agent(complete, idempotent_sends=False)
    call = world.call(entry)
    answers = [await soon(send_message(call, request("hi", message_id="m-1"))) for _ in range(2)]
    assert answers[0].record.id != answers[1].record.id
    assert await world.query("SELECT count(*) FROM tasks_app_receipt") == [(0,)]


async def test_the_same_follow_up_twice_is_taken_once(world: World) -> None:
    entry = await world.add_agent(ask)
    call = world.call(entry)
    first = await soon(send_message(call, request("hi", message_id="m-1")))
    follow_up = {"message_id": "m-2", "task_id": first.record.id}
    second = await soon(send_message(call, request("yes", **follow_up)))
    third = await soon(send_message(call, request("yes", **follow_up)))
    assert third.payload() == second.payload()
    assert [m["messageId"] for m in json.loads(third.payload())["task"]["history"]][::2] == ["m-1", "m-2"]
    with pytest.raises(InvalidParamsError):
        await soon(send_message(call, request("no", **follow_up)))
    await check_everything(world)


async def test_a_message_answered_with_a_message_is_answered_so_again(world: World) -> None:
    entry = await world.add_agent(executor="direct")
    call = world.call(entry)
    first = await soon(send_message(call, request("hi", message_id="m-1")))
    second = await soon(send_message(call, request("hi", message_id="m-1")))
    assert json.loads(first.payload())["message"]["parts"] == [{"text": "hi"}]
    assert second.payload() == first.payload()


async def test_a_repetition_waits_for_the_run_that_there_is(world: World) -> None:
    go_on = asyncio.Event()
    runs = 0

    async def act(run: Run, updates: Updates) -> None:
        nonlocal runs
        runs += 1
        await go_on.wait()
        await updates.status(TaskState.COMPLETED)

    other = await world.start_host()
    entry = await world.add_agent(act)
    sends = [
        asyncio.create_task(send_message(world.call(entry, host=host), request("hi", message_id="m-1")))
        for host in (world.hosts[0], world.hosts[0], other)
    ]
    async with asyncio.timeout(10):
        while await world.query("SELECT count(*) FROM tasks_app_task") == [(0,)]:
            pass
    go_on.set()
    answers = await soon(asyncio.gather(*sends))
    assert {a.record.state for a in answers} == {TaskState.COMPLETED}
    assert len({a.record.id for a in answers}) == 1
    assert runs == 1


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason to send a caller away."""
    monkeypatch.setattr("tasks_app.tables.store.PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr("tasks_app.tables.loader.PATIENCE_SECONDS", PATIENCE)


async def test_a_thousand_copies_through_two_hosts_are_one_task(world: World, patient: None) -> None:
    other = await world.start_host()
    runs: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        runs.append(run.task_id)
        await updates.artifact(chunk(run.text))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    calls = [world.call(entry, host=h) for h in (world.hosts[0], other)]
    answers = await soon(
        asyncio.gather(*(send_message(calls[n % 2], request("hi", message_id="m-1")) for n in range(1000)))
    )
    assert len(runs) == 1
    assert {a.record.id for a in answers} == set(runs)
    assert {a.payload() for a in answers} == {answers[0].payload()}
    assert await world.query("SELECT count(*) FROM tasks_app_task") == [(1,)]
    assert await world.query("SELECT count(*) FROM tasks_app_message") == [(1,)]
    await check_everything(world)


async def test_a_hundred_messages_ten_times_each_through_two_hosts(world: World, patient: None) -> None:
    other = await world.start_host()
    runs: list[str] = []

    async def act(run: Run, updates: Updates) -> None:
        runs.append(run.text)
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    calls = [world.call(entry, host=h) for h in (world.hosts[0], other)]
    copies = [n for _ in range(10) for n in range(100)]
    sends = [send_message(calls[(i + n) % 2], request(f"{n}", message_id=f"m-{n}")) for i, n in enumerate(copies)]
    answers = await soon(asyncio.gather(*sends))
    assert sorted(runs, key=int) == [str(n) for n in range(100)]
    assert len({(n, a.record.id) for n, a in zip(copies, answers, strict=True)}) == 100
    await check_everything(world)
