"""Reading tasks: what is asked for at one moment is read once, and a reading is of one moment."""

from __future__ import annotations

import asyncio
import time

import pytest

from agents.registry import AgentEntry
from protocol.errors import InternalError
from protocol.states import TaskState
from tasks_app.tables.record import EventKind, TaskRecord
from tasks_app.tables.store import Page, Store
from tests.tasks_app.world import World, soon
from tests.tasks_app.writes import START, change, creation, entry, open_desk

LARGE = Page(events=1000, size=1_000_000)


async def make_tasks(world: World, agent: AgentEntry, number: int) -> list[str]:
    async with open_desk(world.dsn) as desk:
        tasks = [creation(agent.id) for _ in range(number)]
        await desk.submit(*tasks)
    return [t.task_id for t in tasks]


def the_store(world: World) -> Store:
    return world.hosts[0].store


async def test_a_task_is_read_as_it_was_written(world: World, agent: AgentEntry) -> None:
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id, request='{"metadata":{"n":1.0}}')
        await desk.submit(new)
        said = entry(2, "a-1")
        await desk.submit(change(new.task_id, 1, seqs=[1, 2], messages=[said], metadata='{"k":[]}'))
    record = await the_store(world).load(new.task_id)
    assert record is not None
    events, record.chunks = record.chunks, []
    assert events == []
    assert record == TaskRecord(
        id=new.task_id,
        agent_id=agent.id,
        owner="alice",
        context_id=new.context_id,
        state=TaskState.WORKING,
        status=record.status,
        status_at=START.replace(second=6),
        created_at=START,
        metadata='{"k":[]}',
        last_seq=2,
        message_count=2,
        version=2,
        attempt=1,
        worker=new.worker,
        leased=True,
        request='{"metadata":{"n":1.0}}',
        history=[new.message.body, said.body],
    )


async def test_absent_tasks_are_none(world: World, agent: AgentEntry) -> None:
    (there,) = await make_tasks(world, agent, 1)
    store = the_store(world)
    absent, found = await asyncio.gather(store.load("absent"), store.load(there))
    assert absent is None
    assert found is not None
    assert await store.load_many([]) == {}


async def test_the_same_task_asked_for_at_one_moment_is_read_once(world: World, agent: AgentEntry) -> None:
    (there,) = await make_tasks(world, agent, 1)
    records = await soon(asyncio.gather(*(the_store(world).load(there) for _ in range(50))))
    assert all(r is records[0] for r in records)


async def test_many_tasks_asked_for_at_one_moment_are_all_read(world: World, agent: AgentEntry) -> None:
    ids = await make_tasks(world, agent, 400)
    records = await soon(asyncio.gather(*map(the_store(world).load, ids)))
    assert [r.id for r in records] == ids


async def test_a_later_reading_sees_what_was_committed_before_it(world: World, agent: AgentEntry) -> None:
    """A reading that began earlier is not reused."""
    store = the_store(world)
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id)
        await desk.submit(new)
        for version in range(1, 30):
            early = asyncio.create_task(store.load(new.task_id))
            await asyncio.sleep(0)
            await desk.submit(change(new.task_id, version))
            record = await soon(store.load(new.task_id))
            assert record is not None
            assert record.version == version + 1
            await early


async def test_a_reading_is_of_one_moment(world: World, agent: AgentEntry) -> None:
    """History and artifacts never run ahead of the task's row, which is read first."""
    store = the_store(world)
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id)
        await desk.submit(new)
        done = asyncio.Event()

        async def write() -> None:
            for version in range(1, 60):
                update = change(
                    new.task_id, version, messages=[entry(version + 1, f"a-{version}")], message_count=version + 1
                )
                update.events[0].kind = EventKind.ARTIFACT
                update.events[0].artifact_id = "x"
                assert await desk.submit(update) == [True]
            done.set()

        writing = asyncio.create_task(write())
        looks = 0
        while not done.is_set():
            record = await soon(store.load(new.task_id))
            assert record is not None
            assert [c.seq for c in record.chunks] == list(range(1, record.last_seq + 1))
            assert len(record.history) == record.message_count == record.version
            looks += 1
        await writing
    assert looks > 0


async def test_who_gave_up_takes_nothing_from_others(world: World, agent: AgentEntry) -> None:
    (there,) = await make_tasks(world, agent, 1)
    store = the_store(world)
    impatient, patient = (asyncio.create_task(store.load(there)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    record = await soon(patient)
    assert record.id == there


async def test_a_task_asked_for_just_as_the_readers_end_is_read(world: World, agent: AgentEntry) -> None:
    one, two, three = await make_tasks(world, agent, 3)
    store = the_store(world)

    def readers() -> list[asyncio.Task[None]]:
        return [t for t in asyncio.all_tasks() if "_call_wanted" in repr(t.get_coro())]

    for _ in range(60):
        first = asyncio.create_task(store.load(one))
        await asyncio.sleep(0)
        second = asyncio.create_task(store.load(two))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        while readers():
            time.sleep(0.0005)  # noqa: ASYNC251 - lets both replies arrive before the loop looks again
            await asyncio.sleep(0)
        async with asyncio.timeout(3):
            assert await store.load(three) is not None
        await soon(asyncio.gather(first, second))


async def test_a_reading_that_fails_is_told_and_does_not_end_the_readers(world: World, agent: AgentEntry) -> None:
    (there,) = await make_tasks(world, agent, 1)
    store = the_store(world)
    with pytest.raises(InternalError):
        await soon(store.load("nul \0"))
    record = await soon(store.load(there))
    assert record.id == there


async def test_events_are_read_beyond_a_cursor_each(world: World, agent: AgentEntry) -> None:
    one, two, three = await make_tasks(world, agent, 3)
    async with open_desk(world.dsn) as desk:
        await desk.submit(*(change(i, 1, seqs=range(1, 6)) for i in (one, two, three)))
    store = the_store(world)
    found = await store.events_after([(one, 3), (two, 5), (three, 0), ("absent", 0)], LARGE)
    assert {i: [e.seq for e in events] for i, events in found.items()} == {one: [4, 5], three: [1, 2, 3, 4, 5]}
    assert [e.seq for e in await store.events_page(one, 1, Page(2, 10_000))] == [2, 3]
    assert [e.seq for e in await store.events_page(one, 1, Page(9, 1))] == [2], "one at least"
    assert [e.seq for e in await store.events_page(one, 0, Page(9, 130))] == [1, 2]
    found = await store.events_after([(one, 0), (three, 2)], Page(9, 130))
    assert {i: [e.seq for e in events] for i, events in found.items()} == {one: [1, 2], three: [3, 4]}
    assert await store.existing([one, "absent"]) == {one}
    assert [(e.seq, e.state) for e in (await store.past(two)).statuses] == [(n, TaskState.WORKING) for n in range(1, 6)]


@pytest.mark.parametrize("key", ["agent", "owner", "message"])
async def test_a_receipt_is_found_by_agent_owner_and_message(world: World, agent: AgentEntry, key: str) -> None:
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id, "m-1")
        await desk.submit(new)
    place = {"agent": agent.id, "owner": "alice", "message": "m-1"}
    store = the_store(world)
    assert await store.receipt(*place.values()) == (new.task_id, "same")  # type: ignore[arg-type]
    place[key] = agent.id + 1 if key == "agent" else "other"
    assert await store.receipt(*place.values()) is None  # type: ignore[arg-type]


async def test_an_artifact_whose_id_holds_control_characters_is_read(world: World, agent: AgentEntry) -> None:
    """Ids are whatever an agent likes, apart from U+0000; so is the metadata of an event, as JSON."""
    name = "".join(map(chr, (*range(1, 32), 127, 0x2028)))
    async with open_desk(world.dsn) as desk:
        new = creation(agent.id)
        await desk.submit(new)
        update = change(new.task_id, 1, seqs=[1, 2])
        for event in update.events:
            event.kind, event.artifact_id, event.body = EventKind.ARTIFACT, name, '{"artifactId":"x","parts":[{}]}'
            event.metadata = '{"k":"\\u001e\\u001f"}'
        update.events[1].append = update.events[1].last_chunk = True
        assert await desk.submit(update) == [True]
    record = await the_store(world).load(new.task_id)
    assert record is not None
    assert [(c.seq, c.artifact_id, c.append, c.last_chunk, c.metadata) for c in record.chunks] == [
        (1, name, False, False, '{"k":"\\u001e\\u001f"}'),
        (2, name, True, True, '{"k":"\\u001e\\u001f"}'),
    ]
    assert record.history == [new.message.body]


async def test_statements_are_planned_once_and_never_compiled(world: World, agent: AgentEntry) -> None:
    """An external PostgreSQL with LLVM took a second for each statement."""
    rows = await the_store(world).query("SELECT current_setting('plan_cache_mode'), current_setting('jit')", [])
    assert rows == [("force_generic_plan", "off")]
