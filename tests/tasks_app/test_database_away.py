"""A database that goes away once a message is stored: its sender is not told to try again, and hears how it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from django.conf import settings

from agents.runtimes.base import Run, Updates
from protocol.errors import UnavailableError
from protocol.ids import new_id
from protocol.model import Artifact, Part
from protocol.states import TaskState
from tasks_app.content.keeping import keep_parts
from tasks_app.execution.claiming import claim_task
from tasks_app.execution.host import Host
from tasks_app.execution.missed import hear_missed
from tasks_app.operations import send_message, stream_message
from tasks_app.operations.waiting import STOPPING
from tasks_app.tables.store import Store
from tests.support.wire_cut import WireCut, open_wire_cut
from tests.tasks_app.test_upkeep import wait_for_state
from tests.tasks_app.test_waiting import Waiting, ended
from tests.tasks_app.test_waiting import ask as ask_and_wait
from tests.tasks_app.world import World, request, soon, until


@pytest_asyncio.fixture
async def wire(world: World) -> AsyncIterator[WireCut]:
    """The way of `away` to the database."""
    async with open_wire_cut(world.dsn) as wire:
        yield wire


@pytest_asyncio.fixture
async def away(world: World, wire: WireCut, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    """A web host that the database may be away for, and that has little patience."""
    monkeypatch.setattr("tasks_app.tables.store.PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr("tasks_app.tables.loader.PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr("tasks_app.live.hub._SAFETY_NET_SECONDS", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr("tasks_app.execution.host.database_dsn", lambda: wire.dsn)
        host = await world.start_host()
    yield host
    wire.open_gate()
    world.hosts.remove(host)
    await host.stop()


def lose(wire: WireCut, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[UnavailableError]:
    """The database is away from the first call of a method on. Gives the errors of that and of later calls."""
    errors: list[UnavailableError] = []
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    async def call(*args: Any) -> Any:
        if not errors:
            wire.close_gate()
        try:
            return await method(*args)
        except UnavailableError as error:
            errors.append(error)
            raise

    monkeypatch.setattr(owner, name, call)
    return errors


async def only_id(world: World) -> str:
    ((task_id,),) = await world.query("SELECT id FROM tasks_app_task")
    return str(task_id)


async def test_who_waits_for_the_end_waits_for_the_database(
    world: World, wire: WireCut, away: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await world.add_agent(execution="worker")
    worker = await world.start_host("worker")
    errors = lose(wire, monkeypatch, away.store, "load")
    sending = asyncio.create_task(send_message(world.call(entry, host=away), request()))
    await until(lambda: len(errors) == 2 or sending.done(), "two reads to give up")
    task_id = await only_id(world)
    assert await soon(claim_task(worker, task_id, 1)) is not None
    wire.open_gate()
    record = (await soon(sending)).record
    assert (record.id, record.state) == (task_id, TaskState.COMPLETED)


async def test_a_host_that_stops_meanwhile_says_so(
    world: World, wire: WireCut, away: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await world.add_agent(execution="worker")
    errors = lose(wire, monkeypatch, away.store, "load")
    sending = asyncio.create_task(send_message(world.call(entry, host=away), request()))
    await until(lambda: errors, "a read to give up")
    away.hub.end()
    with pytest.raises(UnavailableError) as refused:
        await soon(sending)
    assert (refused.value.message, refused.value.retry_after) == (STOPPING, 1)
    assert (await world.load(await only_id(world))).state is TaskState.SUBMITTED


async def test_a_task_that_was_taken_from_this_host_meanwhile(
    world: World, wire: WireCut, away: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender does not wait for the end. What this host knows of the task is old, and an answer."""

    async def act(run: Run, updates: Updates) -> None:
        await asyncio.Event().wait()

    entry = await world.add_agent(act)
    errors = lose(wire, monkeypatch, away.store, "load")
    sending = asyncio.create_task(send_message(world.call(entry, host=away), request(immediately=True)))
    await until(lambda: away.executions, "the run to begin")
    (execution,) = away.executions.values()
    execution.fence()
    record = (await soon(sending)).record
    assert (record.id, record.state, len(errors)) == (await only_id(world), TaskState.SUBMITTED, 1)


async def test_a_stream_begins_with_what_was_stored_and_goes_on(
    world: World, wire: WireCut, away: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await world.add_agent(execution="worker")
    worker = await world.start_host("worker")
    errors = lose(wire, monkeypatch, away.store, "load")
    stream = await soon(stream_message(world.call(entry, host=away), request()))
    assert len(errors) == 1
    first = await soon(anext(stream))
    assert (first.seq, b"TASK_STATE_SUBMITTED" in first.payload) == (0, True)
    assert await soon(claim_task(worker, await only_id(world), 1)) is not None
    wire.open_gate()
    frames = await soon(collect(stream))
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    assert b"TASK_STATE_COMPLETED" in frames[-1].payload
    await stream.aclose()


async def collect(stream: Any) -> list[Any]:
    """The frames of a stream up to its end, without keep-alives."""
    return [frame async for frame in stream if frame.payload is not None]


async def test_an_answer_that_nobody_could_be_told_of_is_found(
    world: World, wire: WireCut, away: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    act = Waiting()
    entry, task_id = await ask_and_wait(world, act)
    tell = away.waits.tell

    async def tell_in_vain(origin: str, task_id: str) -> None:
        wire.close_gate()
        await tell(origin, task_id)

    monkeypatch.setattr(away.waits, "tell", tell_in_vain)
    answer = await soon(send_message(world.call(entry, host=away), request("x", task_id=task_id, immediately=True)))
    assert answer.record.state is TaskState.WORKING
    assert act.answers == []
    await hear_missed(world.hosts[0])
    assert (await ended(world, task_id)).state is TaskState.COMPLETED
    assert ([a.text for a in act.answers], act.runs) == (["x"], 1)


BIG = "x" * 2000
_FILES = "SELECT id FROM tasks_app_storedpart"


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are big from a kilobyte on."""
    monkeypatch.setattr(settings, "STORED_PART_BYTES", 1024)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("overdue", [False, True], ids=["in time", "overdue"])
async def test_a_big_result_waits_for_the_database(
    world: World, wire: WireCut, away: Host, caplog: pytest.LogCaptureFixture, overdue: bool
) -> None:
    """As small ones do, until the deadline of the run."""
    go = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await go.wait()
        await updates.artifact(Artifact(artifact_id="much", parts=[Part(text=BIG)]))
        await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    answer = await soon(send_message(world.call(entry, host=away), request(immediately=True)))
    await wait_for_state(world, answer.record.id, TaskState.WORKING)
    execution = away.executions[answer.record.id]
    before = await world.dump()
    wire.close_gate()
    go.set()
    await until(lambda: "wait for the database" in caplog.text, "the artifact to wait")
    if overdue:
        execution._stop_overdue_agent()
    assert (await world.dump(), await world.query(_FILES)) == (before, [])
    wire.open_gate()
    await soon(execution.settled())
    state = (await world.load(answer.record.id)).state
    assert state is (TaskState.FAILED if overdue else TaskState.COMPLETED)
    assert len(await world.query(_FILES)) == (0 if overdue else 1)


@pytest.mark.usefixtures("small_limit")
async def test_a_big_result_takes_its_room_once(world: World, wire: WireCut) -> None:
    """The commit of its row is not heard, and the row is made anew. A caller is told to try again."""
    entry, task_id = await world.add_agent(max_task_bytes=3000), new_id()
    store = Store(wire.dsn)
    await soon(store.start())
    try:
        wire.cut_next_reply()
        kept = await soon(keep_parts(store, entry, task_id, [Part(text=BIG)], patient=True))
        assert wire.cut_happened.is_set()
        assert await world.query(_FILES) == [(kept.ids[0],)]
        wire.close_gate()
        with pytest.raises(UnavailableError):
            await soon(keep_parts(store, entry, new_id(), [Part(text=BIG)]))
        wire.open_gate()
        assert await world.query(_FILES) == [(kept.ids[0],)]
    finally:
        await soon(store.stop())
