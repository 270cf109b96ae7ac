"""The counters of tasks: exact after any mixture of writes, whoever writes and whatever is rolled back."""

from __future__ import annotations

import asyncio
import random

import psycopg

from protocol.states import TaskState
from tests.tasks_app.checks import check_counters
from tests.tasks_app.world import World
from tests.tasks_app.writes import change, creation, open_desk

ROWS = (
    "INSERT INTO tasks_app_task (id, agent_id, owner, context_id, state, status, status_at, created_at, last_seq,"
    " message_count, version, attempt, dialect, request)"
    " SELECT 'row-' || %s || '-' || n, %s, 'owner-' || n %% 3, 'c', n %% 9, '{}', now(), now(), 0, 0, 1, 1, '', '{}'"
    " FROM generate_series(1, %s) AS n"
)


async def test_inserts_updates_and_deletes_of_many_rows(world: World) -> None:
    one, two = await world.add_agent(), await world.add_agent()
    await world.query(ROWS, ["a", one.id, 90])
    await world.query(ROWS, ["b", two.id, 45])
    await check_counters(world)
    await world.query("UPDATE tasks_app_task SET state = (state + 1) %% 9 WHERE owner <> 'owner-1'")
    await check_counters(world)
    await world.query("UPDATE tasks_app_task SET lease_until = now()")
    await check_counters(world)
    await world.query("UPDATE tasks_app_task SET owner = 'somebody', agent_id = %s WHERE state = 3", [two.id])
    await check_counters(world)
    await world.query("DELETE FROM tasks_app_task WHERE state IN (1, 2, 3)")
    await check_counters(world)
    await world.query("DELETE FROM tasks_app_task")
    await check_counters(world)
    assert await world.query("SELECT sum(tasks)::bigint FROM tasks_app_taskcount") == [(0,)]


async def test_a_rollback_counts_nothing(world: World) -> None:
    agent = await world.add_agent()
    await world.query(ROWS, ["kept", agent.id, 9])
    async with await psycopg.AsyncConnection.connect(world.dsn) as connection:
        await connection.execute(ROWS.encode(), ["lost", agent.id, 20])
        await connection.execute(b"DELETE FROM tasks_app_task WHERE state = 1")
        await connection.rollback()
    await check_counters(world)


async def test_an_insert_that_meets_a_conflict_counts_what_it_inserted(world: World) -> None:
    agent = await world.add_agent()
    await world.query(ROWS, ["a", agent.id, 5])
    await world.query(ROWS + " ON CONFLICT (id) DO NOTHING", ["a", agent.id, 12])
    await check_counters(world)
    await world.query(ROWS + " ON CONFLICT (id) DO UPDATE SET state = 8", ["a", agent.id, 20])
    await check_counters(world)


async def test_many_writers_at_once(world: World) -> None:
    """Journals and others, over the same owner's counters, in any order."""
    agent = await world.add_agent()
    async with open_desk(world.dsn, "web-a") as a, open_desk(world.dsn, "web-b") as b:
        tasks = [creation(agent.id) for _ in range(60)]
        await asyncio.gather(a.submit(*tasks[:30]), b.submit(*tasks[30:]))
        random.Random(1).shuffle(tasks)

        async def live(desk_number: int, task_id: str) -> None:
            desk = (a, b)[desk_number % 2]
            await desk.submit(change(task_id, 1))
            await desk.submit(change(task_id, 2, TaskState.INPUT_REQUIRED))
            await desk.submit(change(task_id, 3, TaskState.COMPLETED, old_state=TaskState.INPUT_REQUIRED))

        async def delete_some() -> None:
            for task in tasks[::6]:
                await world.query("DELETE FROM tasks_app_task WHERE id = %s", [task.task_id])

        await asyncio.gather(delete_some(), *(live(n, t.task_id) for n, t in enumerate(tasks)))
    await check_counters(world)
    assert await world.query("SELECT state, count(*) FROM tasks_app_task GROUP BY 1") == [(3, 50)]
