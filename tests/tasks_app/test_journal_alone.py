"""A write by itself has a statement of its own: it stores and counts what the statement of a batch does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from agents.registry import AgentEntry
from protocol.errors import InternalError
from protocol.states import TaskState
from tasks_app.journal import Change, Creation
from tasks_app.journal.preparing import prepare
from tasks_app.journal.statement import EVENTS_OF_ONE
from tasks_app.tables.record import Event, EventKind
from tests.tasks_app.checks import check_counters
from tests.tasks_app.world import World
from tests.tasks_app.writes import START, Desk, change, creation, entry, open_desk

SPECIAL = "quotes \"\\\" and '', a comma, {braces}, NULL, \N{SNOWMAN}, new\nlines"
_TABLES = {
    "task": "id, owner, context_id, state, status, status_at, created_at, last_seq, message_count, version, attempt,"
    " worker, dialect, request, metadata, retries, deadline_at, has_push_configs, has_stored_parts, push_due_at",
    "message": "task_id, position, message_id, role, body, search, created_at",
    "event": "task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt, created_at",
    "receipt": "owner, message_id, task_id, digest, created_at",
}


def statement_of(write: Creation | Change) -> str:
    """The name of the statement that it gets when nothing else waits."""
    return prepare("web-test", [write])[0]


async def rows(world: World, task: Creation) -> list[Any]:
    """Everything that is stored of a task, its ids replaced by words."""
    found: list[Any] = []
    for table, columns in _TABLES.items():
        key = "id" if table == "task" else "task_id"
        stored = await world.query(
            f"SELECT {columns} FROM tasks_app_{table} WHERE {key} = %s ORDER BY {columns}", [task.task_id]
        )
        found += [[str(v).replace(task.task_id, "ID") for v in row] for row in stored]
    return found


def twins(agent: AgentEntry, **fields: Any) -> list[Creation]:
    """Two creations that are alike but for their ids."""
    made = [creation(agent.id, context_id="c", **fields) for _ in range(2)]
    for one in made:
        one.message = entry(1, SPECIAL, 1, SPECIAL)
    return made


def events(task_id: str, number: int) -> list[Event]:
    """Chunks with what is hard to quote, and one with as little as there can be."""
    full = [
        Event(n, EventKind.ARTIFACT, SPECIAL, START + timedelta(seconds=n), 1, artifact_id=SPECIAL, append=n > 1)
        for n in range(1, number)
    ]
    return [*full, Event(number, EventKind.STATUS, "{}", START, 1, TaskState.WORKING, metadata=SPECIAL)]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"status": SPECIAL, "metadata": SPECIAL, "request": SPECIAL},
        {"worker": None, "deadline_at": START + timedelta(days=9), "parent_id": "somebody"},
    ],
    ids=["plain", "special", "queued"],
)
async def test_a_creation(world: World, desk: Desk, agent: AgentEntry, fields: dict[str, Any]) -> None:
    alone, together = twins(agent, **fields)
    assert statement_of(alone) == "a2a_one_create_0"
    assert await desk.submit(alone) == [True]
    assert await desk.submit(together, creation(agent.id)) == [True, True]
    assert await rows(world, alone) == await rows(world, together)
    assert len(await rows(world, alone)) == 2
    await check_counters(world)


@pytest.mark.parametrize("number", range(1, EVENTS_OF_ONE + 2))
@pytest.mark.parametrize(
    "fields", [{}, {"worker": None, "metadata": SPECIAL, "status": SPECIAL}], ids=["plain", "special"]
)
async def test_a_change(world: World, desk: Desk, agent: AgentEntry, number: int, fields: dict[str, Any]) -> None:
    alone, together = twins(agent)
    other = creation(agent.id)
    await desk.submit(alone, together, other)
    one, two = (
        change(c.task_id, 1, seqs=range(1, number + 1), **(fields | {"events": events(c.task_id, number)}))
        for c in (alone, together)
    )
    assert statement_of(one) == (f"a2a_one_change_{number}" if number <= EVENTS_OF_ONE else "a2a_change")
    assert await desk.submit(one) == [True]
    assert await desk.submit(two, change(other.task_id, 1)) == [True, True]
    assert await rows(world, alone) == await rows(world, together)
    assert len(await rows(world, alone)) == 2 + number
    await check_counters(world)


@pytest.mark.parametrize(
    "fields",
    [{"version": 2}, {"attempt": 2}, {"old_state": TaskState.WORKING}],
    ids=["version", "attempt", "state"],
)
@pytest.mark.parametrize("with_another", [False, True])
async def test_who_builds_on_what_is_not_there_loses(
    world: World, desk: Desk, agent: AgentEntry, fields: dict[str, Any], with_another: bool
) -> None:
    new, other = creation(agent.id), creation(agent.id)
    await desk.submit(new, other)
    before = await rows(world, new)
    stale = change(new.task_id, **({"version": 1} | fields))
    neighbours: Sequence[Change] = [change(other.task_id, 1)] if with_another else []
    assert await desk.submit(stale, *neighbours) == [False, *[True for _ in neighbours]]
    assert await rows(world, new) == before
    await check_counters(world)


async def test_a_message_that_comes_again_creates_nothing(world: World, desk: Desk, agent: AgentEntry) -> None:
    first, again = creation(agent.id, "m-1"), creation(agent.id, "m-1")
    assert await desk.submit(first) == [True]
    assert await desk.submit(again) == [False]
    assert await rows(world, again) == []
    await check_counters(world)


@pytest.mark.parametrize("field", ["version", "body", "metadata", "artifact_id"])
async def test_u_0000_is_refused_and_not_cut_off(world: World, desk: Desk, agent: AgentEntry, field: str) -> None:
    """libpq ends a parameter there."""
    new = creation(agent.id)
    await desk.submit(new)
    before = await rows(world, new)
    if field == "version":
        bad = change(new.task_id, 1, status="{}\0more")
    else:
        values = {"kind": EventKind.ARTIFACT, "body": "{}", "created_at": START, "attempt": 1}
        bad = change(new.task_id, 1, events=[Event(seq=1, **(values | {field: "a\0b"}))])
    assert statement_of(bad) == "a2a_one_change_1"
    (error,) = await desk.submit(bad)
    assert isinstance(error, InternalError)
    assert await rows(world, new) == before
    assert await desk.submit(change(new.task_id, 1)) == [True]


async def test_states_are_counted_by_whoever_writes(world: World, desk: Desk, agent: AgentEntry) -> None:
    """The journal by itself, others by the triggers; between them nothing is counted twice or not at all."""
    states = [TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.WORKING, TaskState.WORKING, TaskState.COMPLETED]
    new, old_state = creation(agent.id), TaskState.SUBMITTED
    await desk.submit(new)
    for version, state in enumerate(states, 1):
        assert await desk.submit(change(new.task_id, version, state, old_state=old_state)) == [True]
        old_state = state
        await check_counters(world)
        await world.query("UPDATE tasks_app_task SET lease_until = now()")
        await check_counters(world)
    await world.query("UPDATE tasks_app_task SET state = 4")
    await check_counters(world)
    await world.query("DELETE FROM tasks_app_task")
    await check_counters(world)


async def test_a_new_connection_counts_too(world: World, desk: Desk, agent: AgentEntry) -> None:
    first = creation(agent.id)
    await desk.submit(first)
    pid = int(desk.journal._backend.split()[0])
    assert await world.query("SELECT pg_terminate_backend(%s, 5000)", [pid]) == [(True,)]
    assert await desk.submit(change(first.task_id, 1)) == [True]
    async with open_desk(world.dsn, "web-other") as other:
        assert await other.submit(change(first.task_id, 2, TaskState.COMPLETED)) == [True]
    await check_counters(world)
