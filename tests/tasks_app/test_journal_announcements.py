"""The journal: in which order it writes, and what it tells whom when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from agents.registry import AgentEntry
from protocol.errors import UnavailableError
from protocol.states import TaskState
from tasks_app.journal import Creation, Journal
from tasks_app.journal.writer import BATCH_ROWS, ENOUGH_ROWS, Write
from tests.tasks_app.world import World, soon
from tests.tasks_app.writes import EAR, WORKER, Desk, change, creation, open_desk, open_ear


async def test_the_writes_of_a_task_keep_their_order(world: World, desk: Desk, agent: AgentEntry) -> None:
    tasks = [creation(agent.id) for _ in range(5)]
    await desk.submit(*tasks)

    async def write_on(task_id: str) -> None:
        for version in range(1, 41):
            assert await desk.submit(change(task_id, version)) == [True]

    await asyncio.gather(*(write_on(c.task_id) for c in tasks))
    rows = await world.query("SELECT task_id, array_agg(seq ORDER BY seq) FROM tasks_app_event GROUP BY task_id")
    assert dict(rows) == {c.task_id: list(range(1, 41)) for c in tasks}
    for task in tasks:
        seqs = [w.last_seq for batch in desk.published for w in batch if w.task_id == task.task_id and w is not task]
        assert seqs == list(range(1, 41)), "published in the order of the log"


async def test_nothing_is_told_before_it_is_stored(world: World, agent: AgentEntry) -> None:
    """When an outcome or a publication is told, another connection sees the rows."""
    seen: list[tuple[str, int]] = []
    with psycopg.connect(world.dsn, autocommit=True) as reader:

        def note(place: str) -> None:
            row = reader.execute("SELECT count(*) FROM tasks_app_event").fetchone()
            assert row is not None
            seen.append((place, row[0]))

        def published(writes: Sequence[Write]) -> None:
            note("published")

        journal = Journal(world.dsn, "web-1", published)
        await journal.start()
        try:
            new = creation(agent.id)
            await soon(journal.submit(new))
            update = change(new.task_id, 1, stored=lambda won: note("stored"))
            journal.submit(update).add_done_callback(lambda _: note("answered"))
            await soon(update.done)
        finally:
            await soon(journal.stop())
    assert seen == [("published", 0), ("stored", 1), ("published", 1), ("answered", 1)]


async def test_notifications_name_the_writer_and_how_far_each_log_goes(
    world: World, desk: Desk, agent: AgentEntry
) -> None:
    async with open_ear(world.dsn) as ear:
        new, other = creation(agent.id), creation(agent.id)
        await desk.submit(new, other)
        assert await ear.hear(2) == [f"{WORKER} {new.task_id}:0 {other.task_id}:0"]
        await desk.submit(change(new.task_id, 1, seqs=[1, 2, 3]))
        assert await ear.hear(1) == [f"{WORKER} {new.task_id}:3"]


async def test_what_has_no_event_is_not_announced(world: World, desk: Desk, agent: AgentEntry) -> None:
    new = creation(agent.id)
    await desk.submit(new)
    async with open_ear(world.dsn) as ear:
        await desk.submit(change(new.task_id, 1, TaskState.SUBMITTED, seqs=[]))
        await desk.submit(change(new.task_id, 2, seqs=[1]))
        assert await ear.hear(1) == [f"{WORKER} {new.task_id}:1"]


async def test_nobody_is_told_unless_another_process_wants_it(world: World, agent: AgentEntry) -> None:
    """A wish that is over and the writer's own count for nothing."""
    async with open_desk(world.dsn) as desk, open_desk(world.dsn, EAR) as own, open_ear(world.dsn) as ear:
        unheard, heard = creation(agent.id), creation(agent.id)
        await own.submit(unheard)
        await world.query("UPDATE tasks_app_listening SET until = now() - interval '1 second' WHERE origin = %s", [EAR])
        await desk.submit(change(unheard.task_id, 1))
        await world.query("UPDATE tasks_app_listening SET until = now() + interval '1 minute' WHERE origin = %s", [EAR])
        await desk.submit(heard)
        assert await ear.hear(1) == [f"{WORKER} {heard.task_id}:0"]


async def test_a_large_batch_is_announced_in_payloads_that_fit(world: World, desk: Desk, agent: AgentEntry) -> None:
    async with open_ear(world.dsn) as ear:
        writes = [creation(agent.id) for _ in range(ENOUGH_ROWS + BATCH_ROWS)]
        await desk.submit(*writes)
        payloads = await ear.hear(len(writes))
    assert [len(p.split(" ")) - 1 for p in payloads] == [ENOUGH_ROWS, 150, BATCH_ROWS - 150]
    assert all(len(p) < 8000 for p in payloads)
    assert {item for p in payloads for item in p.split(" ")[1:]} == {f"{w.task_id}:0" for w in writes}


async def test_a_refused_statement_announces_nothing(world: World, desk: Desk, agent: AgentEntry) -> None:
    async with open_ear(world.dsn) as ear:
        await desk.submit(creation(agent.id, context_id="x" * 256))
        good = creation(agent.id)
        await desk.submit(good)
        assert await ear.hear(1) == [f"{WORKER} {good.task_id}:0"]


async def test_stopping_writes_what_waits_and_takes_no_more(world: World, agent: AgentEntry) -> None:
    async with open_desk(world.dsn) as desk:
        writes: list[Creation] = [creation(agent.id) for _ in range(300)]
        futures = [desk.journal.submit(w) for w in writes]
        await soon(desk.journal.stop())
        assert [f.result() for f in futures] == [True] * 300
        late = desk.journal.submit(creation(agent.id))
        with pytest.raises(UnavailableError) as refused:
            await soon(late)
        assert refused.value.retry_after == 1
    assert await world.query("SELECT count(*) FROM tasks_app_task") == [(300,)]


async def test_who_gave_up_waiting_harms_nobody(world: World, desk: Desk, agent: AgentEntry) -> None:
    """A caller's connection may break at any time: a cancelled future is no reason not to store."""
    impatient, patient = creation(agent.id), creation(agent.id)
    desk.journal.submit(impatient).cancel()
    assert await desk.submit(patient) == [True]
    rows = await world.query("SELECT id FROM tasks_app_task")
    assert {row[0] for row in rows} == {impatient.task_id, patient.task_id}
