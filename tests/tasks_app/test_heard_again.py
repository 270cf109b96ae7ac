"""Processes that are taken for dead, and heard again before anybody has taken their runs: these go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from protocol.states import TaskState
from tasks_app.execution.sweeping import sweep
from tasks_app.execution.upkeep import end_task
from tasks_app.tables.record import TaskRecord
from tests.tasks_app.checks import check_everything, events_of
from tests.tasks_app.test_journal_recovery import blocked_backend
from tests.tasks_app.test_upkeep import EXPIRE, running
from tests.tasks_app.world import World, beat, soon


@pytest.mark.parametrize("cancel_requested", [False, True])
async def test_a_heartbeat_that_comes_last_saves_its_run(
    world: World, monkeypatch: pytest.MonkeyPatch, cancel_requested: bool
) -> None:
    """The sweep is about to end a task, FAILED or CANCELED, when the process that runs it is heard again."""
    other = await world.start_host()
    _, task_id = await running(world)
    if cancel_requested:
        await world.query("UPDATE tasks_app_task SET cancel_requested_at = now()")
    await world.query(EXPIRE)
    await soon(sweep(other))
    load_many, beats = other.store.load_many, []

    async def load_and_beat(ids: Sequence[str], **fields: bool) -> dict[str, TaskRecord]:
        records = await load_many(ids, **fields)
        await beat(world.hosts[0])
        beats.append(await world.dump())
        return records

    monkeypatch.setattr(other.store, "load_many", load_and_beat)
    assert await soon(sweep(other)) == 1
    assert beats == [await world.dump()], "and nothing has changed since"
    assert not world.hosts[0].executions[task_id].fenced
    assert await events_of(world, task_id) == [("WORKING",)]
    await check_everything(world)


async def test_a_heartbeat_that_has_the_row_first_saves_its_run(world: World) -> None:
    """The sweep's statement waits for the row, and looks at the lease again when it gets it."""
    other = await world.start_host()
    _, task_id = await running(world)
    await world.query(EXPIRE)
    record = await world.load(task_id)
    async with await psycopg.AsyncConnection.connect(world.dsn) as heartbeat:
        await heartbeat.execute("UPDATE tasks_app_task SET lease_until = now() + interval '8 s'")
        ending = asyncio.create_task(end_task(other, record, TaskState.FAILED, if_unheld=True))
        await blocked_backend(world, heartbeat.info.backend_pid)
        await heartbeat.commit()
    assert await soon(ending) is False
    assert await events_of(world, task_id) == [("WORKING",)]
    assert await soon(end_task(other, record, TaskState.FAILED)) is True
