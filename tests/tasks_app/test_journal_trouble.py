"""The journal on a database that answers, but takes no writes: changes wait, new tasks are refused in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from psycopg.conninfo import make_conninfo

from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.errors import InternalError, UnavailableError
from protocol.states import TaskState
from tasks_app.journal import writer
from tasks_app.operations import send_message
from tasks_app.tables.passing import may_pass
from tests.support.wire_cut import WireCut, open_wire_cut
from tests.tasks_app.test_journal_recovery import blocked_backend
from tests.tasks_app.world import World, request, soon, until
from tests.tasks_app.writes import Desk, change, creation, open_desk

PATIENCE = 0.25  # the journal's, in these tests


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_CREATION_PATIENCE", PATIENCE)
    monkeypatch.setattr(writer, "_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(writer, "_LOOK_SECONDS", 0.05)


@pytest_asyncio.fixture
async def fault(world: World) -> AsyncIterator[None]:
    """While the table `fault` has a row, every write of a task fails with the SQLSTATE that is in it."""
    await world.query(
        "CREATE TABLE fault (state text);"
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE found text := (SELECT state FROM fault);"
        " BEGIN IF found IS NOT NULL THEN RAISE 'no more' USING ERRCODE = found; END IF; RETURN NULL; END $$;"
        "CREATE TRIGGER fail AFTER INSERT OR UPDATE ON tasks_app_task FOR EACH ROW EXECUTE FUNCTION fail()"
    )
    yield
    await world.query("DROP TRIGGER fail ON tasks_app_task; DROP FUNCTION fail; DROP TABLE fault")


FAULTS = {
    "disk full": "53100",
    "out of memory": "53200",
    "i/o error": "58030",
    "canceled": "57014",
    "read-only": "25006",
}


@pytest.mark.usefixtures("fault")
@pytest.mark.parametrize("state", FAULTS.values(), ids=list(FAULTS))
async def test_a_server_that_takes_no_writes(world: World, agent: AgentEntry, state: str) -> None:
    """In one batch and after it: new tasks are refused and leave nothing, the change is stored once, later."""
    async with open_desk(world.dsn) as desk:
        old, refused = creation(agent.id), creation(agent.id, "m-1")
        await desk.submit(old)
        await world.query("INSERT INTO fault VALUES (%s)", [state])
        before = await world.dump()
        outcome: list[bool | None] = []
        update = change(old.task_id, 1, TaskState.COMPLETED, stored=outcome.append)
        waiting = asyncio.create_task(desk.submit(update, refused))
        with pytest.raises(UnavailableError) as error:
            await soon(refused.done)
        assert error.value.retry_after == 5
        (late,) = await desk.submit(creation(agent.id, "m-2"))
        assert isinstance(late, UnavailableError)
        assert not update.done.done()
        assert await world.dump() == before
        await world.query("DELETE FROM fault")
        assert (await soon(waiting))[0] is True
        assert outcome == [True]
        assert [w for batch in desk.published for w in batch] == [old, update]
        assert await world.query("SELECT id, version FROM tasks_app_task") == [(old.task_id, 2)]
        assert await world.query("SELECT seq FROM tasks_app_event") == [(1,)]
        assert await desk.submit(creation(agent.id, "m-1")) == [True], "what was refused may come again"


@pytest.mark.usefixtures("fault")
async def test_a_verdict_does_not_wait_for_the_server(world: World, agent: AgentEntry) -> None:
    """Leases are over, as nobody could extend them. Who ends tasks without a lease has to look again, afterwards."""
    async with open_desk(world.dsn) as desk:
        living, waiting = creation(agent.id), creation(agent.id)
        await desk.submit(living, waiting)
        await world.query("INSERT INTO fault VALUES ('53100')")
        await world.query("ALTER TABLE tasks_app_task DISABLE TRIGGER fail")
        await world.query("UPDATE tasks_app_task SET lease_until = now() - interval '1 s'")
        await world.query("ALTER TABLE tasks_app_task ENABLE TRIGGER fail")
        before = await world.dump()
        verdict = change(living.task_id, 1, TaskState.FAILED, new_attempt=2, worker=None, if_unheld=True)
        other = asyncio.create_task(desk.submit(change(waiting.task_id, 1)))
        late = change(waiting.task_id, 2, TaskState.FAILED, new_attempt=2, worker=None, if_unheld=True)
        for error in await desk.submit(verdict, late):
            assert isinstance(error, UnavailableError)
        assert await world.dump() == before
        await world.query("DELETE FROM fault")
        assert await soon(other) == [True]
        versions = await world.query("SELECT id, version, attempt FROM tasks_app_task ORDER BY version")
        assert versions == [(living.task_id, 1, 1), (waiting.task_id, 2, 1)]


@pytest.mark.usefixtures("fault")
async def test_a_host_without_runs_finds_out_that_the_disk_has_room_again(world: World, agent: AgentEntry) -> None:
    """There is no change to try with: new tasks are the tries."""
    async with open_desk(world.dsn) as desk:
        await world.query("INSERT INTO fault VALUES ('53100')")
        for n in range(3):
            (outcome,) = await desk.submit(creation(agent.id, f"m-{n}"))
            assert isinstance(outcome, UnavailableError)
        assert await world.query("SELECT count(*) FROM tasks_app_task") == [(0,)]
        await world.query("DELETE FROM fault")
        assert await desk.submit(creation(agent.id, "m-0")) == [True]


async def idle_disconnect(wire: WireCut, desk: Desk) -> None:
    """Long after all that, the connection of the idle journal goes, as by a restart of the server."""
    loop = asyncio.get_running_loop()
    later = loop.time() + 2 * PATIENCE
    await until(lambda: loop.time() > later, "the journal's patience to be over")
    link = desk.journal._link
    assert link is not None
    wire.cut()
    await soon(asyncio.shield(link.broken))


async def test_trouble_ends_with_what_is_read_back(world: World, agent: AgentEntry) -> None:
    """A healthy server takes the next task, and those of a burst: none is refused for what was long ago."""
    async with open_wire_cut(world.dsn) as wire, open_desk(wire.dsn) as desk:
        wire.cut_next_reply()
        assert await desk.submit(creation(agent.id)) == [True]
        assert wire.cut_happened.is_set()
        await idle_disconnect(wire, desk)
        assert await desk.submit(*(creation(agent.id) for _ in range(3))) == [True] * 3


@pytest.mark.usefixtures("fault")
async def test_trouble_ends_with_what_is_refused(world: World, agent: AgentEntry) -> None:
    """The same after a server that was full and took no new task, or that refused a write for its own sake."""
    async with open_wire_cut(world.dsn) as wire, open_desk(wire.dsn) as desk:
        old = creation(agent.id)
        await desk.submit(old)
        await world.query("INSERT INTO fault VALUES ('53100')")
        (outcome,) = await desk.submit(creation(agent.id))
        assert isinstance(outcome, UnavailableError)
        await world.query("DELETE FROM fault")
        await idle_disconnect(wire, desk)
        assert await desk.submit(creation(agent.id)) == [True]
        await world.query("INSERT INTO fault VALUES ('53100')")
        update = desk.journal.submit(change(old.task_id, 1))
        await until(lambda: desk.journal._trouble, "the journal's first failure")
        await world.query("UPDATE fault SET state = '22012'")
        with pytest.raises(InternalError):
            await soon(update)
        await world.query("DELETE FROM fault")
        await idle_disconnect(wire, desk)
        assert await desk.submit(creation(agent.id)) == [True]
        assert await world.query("SELECT count(*) FROM tasks_app_task") == [(3,)]


async def test_a_write_that_takes_longer_than_the_servers_limit(world: World, agent: AgentEntry) -> None:
    """It would in every try, and hold up those after it."""
    dsn = make_conninfo(world.dsn, options="-c statement_timeout=300 -c lock_timeout=300")
    async with open_desk(dsn) as desk:
        old = creation(agent.id)
        await desk.submit(old)
        async with world.locked_tasks() as lock:
            stored = asyncio.create_task(desk.submit(change(old.task_id, 1)))
            pid = await blocked_backend(world, lock)
            loop = asyncio.get_running_loop()
            later = loop.time() + 1
            await until(lambda: loop.time() > later, "the limit to be over")
            assert await blocked_backend(world, lock) == pid
            assert desk.journal._trouble is None
        assert await soon(stored) == [True]


@pytest.mark.usefixtures("fault")
async def test_a_run_keeps_its_result_until_the_server_takes_it(world: World) -> None:
    """It is not taken for one that another process has fenced off."""
    done = asyncio.Event()

    async def act(run: Run, updates: Updates) -> None:
        await done.wait()
        await updates.status(TaskState.COMPLETED)

    answer = await soon(send_message(world.call(await world.add_agent(act)), request(immediately=True)))
    execution = world.hosts[0].executions[answer.record.id]
    await world.query("INSERT INTO fault VALUES ('25006')")
    done.set()
    await until(lambda: world.hosts[0].journal._trouble, "the journal's first failure")
    assert not execution.fenced
    assert (await world.load(answer.record.id)).state is TaskState.SUBMITTED
    await world.query("DELETE FROM fault")
    await soon(execution.settled())
    assert (await world.load(answer.record.id)).state is TaskState.COMPLETED


async def test_the_connection_breaks_and_the_next_server_is_read_only(world: World, agent: AgentEntry) -> None:
    """As after a failover to a standby: the journal connects again until it gets to a server that takes writes."""
    async with open_wire_cut(world.dsn) as wire, open_desk(wire.dsn) as desk:
        old = creation(agent.id)
        await desk.submit(old)
        async with world.read_only():
            wire.cut()
            update, refused = change(old.task_id, 1), creation(agent.id)
            waiting = asyncio.create_task(desk.submit(update, refused))
            with pytest.raises(UnavailableError):
                await soon(refused.done)
            assert not update.done.done()
        assert (await soon(waiting))[0] is True
        assert await world.query("SELECT id, version FROM tasks_app_task") == [(old.task_id, 2)]


async def test_a_standby_is_not_believed_that_nothing_was_stored(world: World, agent: AgentEntry) -> None:
    """It may lag behind: a task whose reply was lost waits until a primary tells."""
    await world.query(
        "CREATE SCHEMA later; CREATE TABLE later.standby (yes boolean);"
        "CREATE FUNCTION later.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS"
        " $$ SELECT EXISTS (SELECT FROM later.standby) $$"
    )
    dsn = make_conninfo(world.dsn, options="-c search_path=later,pg_catalog,public")
    try:
        async with open_wire_cut(dsn) as wire, open_desk(wire.dsn) as desk:
            new = creation(agent.id)
            await world.query("INSERT INTO later.standby VALUES (true)")
            wire.cut_next_reply()
            stored = asyncio.create_task(desk.submit(new))
            await soon(wire.cut_happened.wait())
            late = desk.journal.submit(creation(agent.id))
            with pytest.raises(UnavailableError):
                await soon(late)
            assert not stored.done()
            await world.query("DELETE FROM later.standby")
            assert await soon(stored) == [True]
            assert await world.query("SELECT id FROM tasks_app_task") == [(new.task_id,)]
    finally:
        await world.query("DROP SCHEMA later CASCADE")


async def test_a_task_that_was_never_sent_is_refused_in_time(world: World, agent: AgentEntry) -> None:
    """The connection of an idle journal has gone, and with it the server: the outcome is not open."""
    async with open_wire_cut(world.dsn) as wire, open_desk(wire.dsn) as desk:
        wire.close_gate()
        link = desk.journal._link
        assert link is not None
        await soon(asyncio.shield(link.broken))
        (outcome,) = await desk.submit(creation(agent.id))
        assert isinstance(outcome, UnavailableError)
        wire.open_gate()
        assert await world.query("SELECT count(*) FROM tasks_app_task") == [(0,)]


async def test_new_tasks_do_not_wait_behind_a_statement_without_an_answer(world: World, agent: AgentEntry) -> None:
    """The clock runs whatever the journal waits for."""
    async with open_desk(world.dsn) as desk:
        old = creation(agent.id)
        await desk.submit(old)
        async with world.locked_tasks():
            update = desk.journal.submit(change(old.task_id, 1))
            await until(lambda: not desk.journal._waiting, "the statement")
            (outcome,) = await desk.submit(creation(agent.id))
            assert isinstance(outcome, UnavailableError)
            assert not update.done()
        assert await soon(update) is True
        assert await world.query("SELECT id, version FROM tasks_app_task") == [(old.task_id, 2)]


def test_what_another_try_may_change() -> None:
    """SQLSTATEs of errors that another try may not give, and of those that it would."""
    lookup = psycopg.errors.lookup
    for state in ("08006", "40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "57P01", "58030", "25006"):
        assert may_pass(lookup(state)("")), state
    for state in ("54000", "54001", "22P05", "23505", "42501", "42P01", "25P02", "XX000"):
        assert not may_pass(lookup(state)("")), state
    assert may_pass(psycopg.OperationalError("the connection is lost"))
    assert not may_pass(psycopg.InterfaceError("a mistake"))
