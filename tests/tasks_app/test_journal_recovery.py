"""The journal on a connection that breaks: nothing is written twice, nothing that was written is reported as lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest
import pytest_asyncio

from agents.registry import AgentEntry
from protocol.errors import InternalError, UnavailableError
from protocol.states import TaskState
from tasks_app.journal import writer
from tests.support.wire_cut import WireCut, open_wire_cut
from tests.tasks_app.world import PATIENCE, World, soon, until
from tests.tasks_app.writes import Desk, change, creation, entry, open_desk, open_ear

FOLLOW_UP = {"old_state": TaskState.INPUT_REQUIRED, "new_attempt": 2, "message_count": 2}
"""What the change of a task that waits for an answer says, beside the message."""


@pytest_asyncio.fixture
async def wire(world: World) -> AsyncIterator[WireCut]:
    async with open_wire_cut(world.dsn) as wire:
        yield wire


@pytest_asyncio.fixture
async def desk(wire: WireCut) -> AsyncIterator[Desk]:
    async with open_desk(wire.dsn) as desk:
        yield desk
        wire.open_gate()  # What is left over after a failure must not keep the journal from stopping.


async def test_a_backend_that_is_terminated_before_the_commit(world: World, desk: Desk, agent: AgentEntry) -> None:
    """The statement waits for a row lock, its backend is terminated: nothing is stored; it is sent again."""
    old, new = creation(agent.id), creation(agent.id)
    await desk.submit(old)
    async with world.locked_tasks() as lock:
        outcomes = asyncio.create_task(desk.submit(change(old.task_id, 1), new))
        pid = await blocked_backend(world, lock)
        assert await world.query("SELECT pg_terminate_backend(%s, 5000)", [pid]) == [(True,)]
    assert await soon(outcomes) == [True, True]
    rows = await world.query("SELECT id, version FROM tasks_app_task")
    assert dict(rows) == {old.task_id: 2, new.task_id: 1}
    assert await world.query("SELECT seq FROM tasks_app_event") == [(1,)]
    assert await world.query("SELECT count(*) FROM tasks_app_message") == [(2,)]


async def blocked_backend(world: World, blocker: int) -> int:
    """The pid of the backend that waits for a lock of `blocker`."""
    statement = "SELECT pid FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    async with asyncio.timeout(PATIENCE):
        while not (rows := await world.query(statement, [blocker])):
            pass
    return int(rows[0][0])


async def test_a_statement_that_goes_on_without_its_connection(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry, caplog: pytest.LogCaptureFixture
) -> None:
    """It waits for a row lock, and its backend does not notice that nobody is there any more: it is waited for. Sent
    again, the change would find that somebody, itself, was first."""
    old, new = creation(agent.id), creation(agent.id, "m-1")
    await desk.submit(old)
    async with world.locked_tasks() as lock:
        update = change(old.task_id, 1)
        outcomes = asyncio.create_task(desk.submit(update, new))
        pid = await blocked_backend(world, lock)
        wire.cut()
        await until(lambda: "OpenOutcomeError" in caplog.text, "the look at what became of it")
        assert await world.query("SELECT pid FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))", [lock]) == [
            (pid,)
        ], "it was not sent again"
    assert await soon(outcomes) == [True, True]
    assert [w for batch in desk.published for w in batch] == [old, update, new]
    assert dict(await world.query("SELECT id, version FROM tasks_app_task")) == {old.task_id: 2, new.task_id: 1}
    assert await world.query("SELECT seq FROM tasks_app_event") == [(1,)]


async def test_a_connection_that_breaks_after_the_commit(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry
) -> None:
    """The reply is lost: the rows are read back, published once and answered as won."""
    old = creation(agent.id)
    await desk.submit(old)
    outcome: list[bool | None] = []
    update, new = change(old.task_id, 1, seqs=[1, 2], stored=outcome.append), creation(agent.id, "m-1")
    wire.cut_next_reply()
    assert await desk.submit(update, new) == [True, True]
    assert wire.cut_happened.is_set()
    assert outcome == [True]
    assert [w for batch in desk.published for w in batch] == [old, update, new]
    rows = await world.query("SELECT id, version FROM tasks_app_task")
    assert dict(rows) == {old.task_id: 2, new.task_id: 1}
    assert await world.query("SELECT seq FROM tasks_app_event ORDER BY seq") == [(1,), (2,)]
    assert await world.query("SELECT count(*) FROM tasks_app_message") == [(2,)]
    assert await world.query("SELECT task_id FROM tasks_app_receipt") == [(new.task_id,)]


async def test_a_loser_whose_reply_is_lost_has_lost(world: World, desk: Desk, wire: WireCut, agent: AgentEntry) -> None:
    first = creation(agent.id, "m-1")
    await desk.submit(first)
    await desk.submit(change(first.task_id, 1, new_attempt=2))
    before = await world.dump()
    stale, repeated = change(first.task_id, 1, TaskState.COMPLETED), creation(agent.id, "m-1")
    wire.cut_next_reply()
    assert await desk.submit(stale, repeated) == [False, False]
    assert wire.cut_happened.is_set()
    assert await world.dump() == before


async def test_a_batch_of_winners_and_losers_whose_reply_is_lost(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry
) -> None:
    first = creation(agent.id, "m-1")
    await desk.submit(first)
    winner, loser = creation(agent.id, "m-2"), creation(agent.id, "m-1")
    wire.cut_next_reply()
    assert await desk.submit(winner, loser) == [True, False]
    rows = await world.query("SELECT task_id FROM tasks_app_receipt")
    assert {row[0] for row in rows} == {first.task_id, winner.task_id}
    assert await world.query("SELECT count(*) FROM tasks_app_task") == [(2,)]


async def test_somebody_elses_write_is_not_taken_for_ones_own(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry
) -> None:
    """Two processes claim one task. The one whose connection broke before its statement must not believe that the
    other one's row, of the same version and attempt, is its own."""
    new = creation(agent.id, worker=None)
    await desk.submit(new)
    wire.close_gate()
    mine = change(new.task_id, 1, TaskState.SUBMITTED, seqs=[], worker="worker-mine")
    outcome = asyncio.create_task(desk.submit(mine))
    async with open_desk(world.dsn, "worker-other") as other:
        theirs = change(new.task_id, 1, TaskState.SUBMITTED, seqs=[], worker="worker-other")
        assert await other.submit(theirs) == [True]
    wire.open_gate()
    assert await soon(outcome) == [False]
    assert await world.query("SELECT version, worker FROM tasks_app_task") == [(2, "worker-other")]


async def test_somebody_elses_message_is_not_taken_for_ones_own(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry
) -> None:
    """The same with follow-ups: both make attempt 2 of version 2, with other messages. One is stored."""
    new = creation(agent.id)
    await desk.submit(new)
    await desk.submit(change(new.task_id, 1, TaskState.INPUT_REQUIRED))
    wire.close_gate()
    mine = change(new.task_id, 2, messages=[entry(2, "mine", 1)], **FOLLOW_UP)
    outcome = asyncio.create_task(desk.submit(mine))
    async with open_desk(world.dsn, "web-other") as other:
        theirs = change(
            new.task_id, 2, messages=[entry(2, "theirs", 1)], **FOLLOW_UP,
            at=mine.status_at + timedelta(microseconds=1),
        )  # fmt: skip
        assert await other.submit(theirs) == [True]
    wire.open_gate()
    assert await soon(outcome) == [False]
    assert await world.query("SELECT message_id FROM tasks_app_message WHERE position = 2") == [("theirs",)]


async def test_a_write_that_was_built_upon_is_still_known_as_stored(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry
) -> None:
    """The reply is lost, and before the row is read back another process has written the next version."""
    new = creation(agent.id)
    await desk.submit(new)
    await desk.submit(change(new.task_id, 1, TaskState.INPUT_REQUIRED))
    mine = change(new.task_id, 2, messages=[entry(2, "mine", 1)], **FOLLOW_UP)
    wire.cut_next_reply()
    outcome = asyncio.create_task(desk.submit(mine))
    await soon(wire.cut_happened.wait())
    wire.close_gate()
    async with open_desk(world.dsn, "web-other") as other:
        cancel = change(new.task_id, 3, TaskState.CANCELED, attempt=2, new_attempt=3, message_count=2)
        assert await other.submit(cancel) == [True]
    wire.open_gate()
    assert await soon(outcome) == [True]
    assert await world.query("SELECT version, attempt FROM tasks_app_task") == [(4, 3)]
    assert await world.query("SELECT message_id FROM tasks_app_message WHERE position = 2") == [("mine",)]


async def test_writes_of_many_tasks_over_a_connection_that_breaks_again_and_again(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry
) -> None:
    tasks = [creation(agent.id, f"m-{n}") for n in range(8)]
    assert await desk.submit(*tasks) == [True] * 8

    async def write_on(task_id: str) -> None:
        for version in range(1, 21):
            assert await desk.submit(change(task_id, version)) == [True]

    async def cut_now_and_then() -> None:
        for _ in range(12):
            wire.cut_next_reply()
            await wire.cut_happened.wait()

    cutter = asyncio.create_task(cut_now_and_then())
    await soon(asyncio.gather(*(write_on(c.task_id) for c in tasks)))
    cutter.cancel()
    await asyncio.gather(cutter, return_exceptions=True)
    rows = await world.query("SELECT task_id, array_agg(seq ORDER BY seq) FROM tasks_app_event GROUP BY task_id")
    assert dict(rows) == {c.task_id: list(range(1, 21)) for c in tasks}
    for task in tasks:
        seqs = [w.last_seq for batch in desk.published for w in batch if w.task_id == task.task_id and w is not task]
        assert seqs == list(range(1, 21)), "each published once, in order"


async def test_a_notification_is_sent_once_though_its_reply_was_lost(
    world: World, desk: Desk, wire: WireCut, agent: AgentEntry
) -> None:
    async with open_ear(world.dsn) as ear:
        new = creation(agent.id)
        wire.cut_next_reply()
        await desk.submit(new)
        last = creation(agent.id)
        await desk.submit(last)
        assert " ".join(await ear.hear(2)).split(" ")[1::2] == [f"{new.task_id}:0", f"{last.task_id}:0"]


async def test_without_a_database_new_tasks_are_refused_and_stored_ones_wait(
    world: World,
    desk: Desk,
    wire: WireCut,
    agent: AgentEntry,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(writer, "_CREATION_PATIENCE", 0.25)
    monkeypatch.setattr(writer, "_RETRY_SECONDS", 0.05)
    old = creation(agent.id)
    await desk.submit(old)
    wire.close_gate()
    update = desk.journal.submit(change(old.task_id, 1))
    await until(lambda: "lost its connection" in caplog.text, "the journal's attempt to reconnect")
    late = [desk.journal.submit(creation(agent.id, f"m-{n}")) for n in range(3)]
    for future in late:
        with pytest.raises(UnavailableError) as refused:
            await soon(future)
        assert refused.value.retry_after == 5
    assert not update.done()
    wire.open_gate()
    assert await soon(update) is True
    assert await world.query("SELECT id, version FROM tasks_app_task") == [(old.task_id, 2)]
    assert await desk.submit(creation(agent.id, "m-0")) == [True], "what was refused may come again"


async def test_an_error_that_comes_again_does_not_stop_the_journal(world: World, desk: Desk, agent: AgentEntry) -> None:
    """A limit of the server is an OperationalError to the driver, but the connection is well: only its write fails."""
    await world.query(
        "CREATE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.context_id = 'poison' THEN RAISE 'too much' USING ERRCODE = 'program_limit_exceeded'; END IF;"
        " RETURN NEW; END $$;"
        "CREATE TRIGGER refuse_poison BEFORE INSERT ON tasks_app_task FOR EACH ROW EXECUTE FUNCTION refuse_poison()"
    )
    try:
        poison, good = creation(agent.id, context_id="poison"), creation(agent.id)
        outcomes = await desk.submit(poison, good)
        assert isinstance(outcomes[0], InternalError)
        assert outcomes[1] is True
        assert await world.query("SELECT id FROM tasks_app_task") == [(good.task_id,)]
    finally:
        await world.query("DROP TRIGGER refuse_poison ON tasks_app_task; DROP FUNCTION refuse_poison()")


async def test_a_deadlock_is_nobodys_loss(world: World, agent: AgentEntry) -> None:
    """Two processes that lock the same rows in another order: PostgreSQL ends one statement, which is sent again."""
    async with open_desk(world.dsn, "web-a") as a, open_desk(world.dsn, "web-b") as b:
        tasks = [creation(agent.id) for _ in range(2)]
        await a.submit(*tasks)
        one, two = tasks
        async with await psycopg.AsyncConnection.connect(world.dsn) as lock:
            await lock.execute("SELECT * FROM tasks_app_task WHERE id = %s FOR UPDATE", [one.task_id])
            first = asyncio.create_task(a.submit(change(one.task_id, 1), change(two.task_id, 1)))
            await blocked_backend(world, lock.info.backend_pid)
            # The lock's owner now wants what the waiting statement may hold: one of the two is the victim.
            try:
                await lock.execute("UPDATE tasks_app_task SET version = version WHERE id = %s", [two.task_id])
                await lock.commit()
            except psycopg.errors.DeadlockDetected:
                await lock.rollback()
        assert await soon(first) == [True, True]
        assert await b.submit(change(one.task_id, 2), change(two.task_id, 2)) == [True, True]
    rows = await world.query("SELECT id, version FROM tasks_app_task")
    assert dict(rows) == {one.task_id: 3, two.task_id: 3}
