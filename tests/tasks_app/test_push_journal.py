"""What the journal's statement stores for push configs: the config with its message, the note with the events."""

from __future__ import annotations

import asyncio
from typing import Any

from agents.registry import AgentEntry
from agents.threads import in_thread
from protocol.ids import new_id
from tasks_app.models import PushConfig, Task
from tasks_app.push import configs
from tasks_app.push.config import CONFIGS_MAX, StoredConfig
from tests.tasks_app.world import PATIENCE, World, soon
from tests.tasks_app.writes import START, Desk, change, creation

CONFIG_COLUMNS = """config_id, url, token, scheme, credentials, version, created_at, cursor, last_seq, due_at, claim,
    attempts, last_error, disabled_reason"""


def stored(task_id: str, config_id: str = "c", cursor: int = 0, **fields: Any) -> StoredConfig:
    """A config with secrets that only look encrypted."""
    values = {
        "task_id": task_id,
        "config_id": config_id,
        "url": 'http://hook.test/"\\',
        "token": "t",
        "scheme": "Bearer",
        "credentials": "s3",
        "version": "1.0",
        "created_at": START,
        "cursor": cursor,
    }
    return StoredConfig(**(values | fields))


async def notes(world: World, task_id: str) -> tuple[bool, bool]:
    """(whether a task has configs, whether events of it wait to be spread)."""
    sql = "SELECT has_push_configs, push_due_at IS NOT NULL FROM tasks_app_task WHERE id = %s"
    ((has, due),) = await world.query(sql, [task_id])
    return has, due


async def test_a_config_is_stored_with_its_task(world: World, desk: Desk, agent: AgentEntry) -> None:
    plain, told = creation(agent.id), creation(agent.id)
    told.push_config = stored(told.task_id)
    assert await desk.submit(plain, told) == [True, True]
    assert await world.query(f"SELECT {CONFIG_COLUMNS} FROM tasks_app_pushconfig") == [
        ("c", 'http://hook.test/"\\', "t", "Bearer", "s3", "1.0", START, 0, 0, None, 0, 0, "", "")
    ]
    assert await notes(world, plain.task_id) == (False, False)
    assert await notes(world, told.task_id) == (True, False)


async def test_no_config_of_a_task_that_lost(world: World, desk: Desk, agent: AgentEntry) -> None:
    first, again = creation(agent.id, "m"), creation(agent.id, "m")
    again.push_config = stored(again.task_id)
    late = change(first.task_id, 7)
    late.push_config = stored(first.task_id)
    await desk.submit(first)
    assert await desk.submit(again, late) == [False, False]
    assert await world.query("SELECT * FROM tasks_app_pushconfig") == []
    assert await notes(world, first.task_id) == (False, False)


async def test_events_are_noted_where_there_are_configs(world: World, desk: Desk, agent: AgentEntry) -> None:
    plain, told = creation(agent.id), creation(agent.id)
    told.push_config = stored(told.task_id)
    await desk.submit(plain, told)
    changes = [change(plain.task_id, 1), change(told.task_id, 1)]
    assert await desk.submit(*changes) == [True, True]
    assert [c.has_push_configs for c in changes] == [False, True]
    assert await notes(world, plain.task_id) == (False, False)
    assert await notes(world, told.task_id) == (True, True)


async def test_what_has_no_event_is_not_noted(world: World, desk: Desk, agent: AgentEntry) -> None:
    told = creation(agent.id)
    told.push_config = stored(told.task_id)
    claim = change(told.task_id, 1, seqs=[])
    await desk.submit(told)
    await desk.submit(claim)
    assert await notes(world, told.task_id) == (True, False)


async def test_a_follow_up_brings_a_config(world: World, desk: Desk, agent: AgentEntry) -> None:
    task = creation(agent.id)
    await desk.submit(task)
    await desk.submit(change(task.task_id, 1))
    follow_up = change(task.task_id, 2)
    follow_up.push_config = stored(task.task_id, cursor=1)
    assert await desk.submit(follow_up, creation(agent.id)) == [True, True]
    assert follow_up.has_push_configs
    assert await world.query("SELECT config_id, cursor, last_seq FROM tasks_app_pushconfig") == [("c", 1, 1)]
    assert await notes(world, task.task_id) == (True, True)


async def test_the_same_id_goes_on_where_its_predecessor_was(world: World, desk: Desk, agent: AgentEntry) -> None:
    task = creation(agent.id)
    task.push_config = stored(task.task_id)
    await desk.submit(task)
    await world.query(
        """UPDATE tasks_app_pushconfig SET cursor = 2, last_seq = 5, due_at = now() + interval '1 hour', claim = 3,
            lease_until = now(), attempts = 4, last_error = 'HTTP 500', disabled_reason = 'x'"""
    )
    follow_up = change(task.task_id, 1)
    follow_up.push_config = stored(task.task_id, cursor=7, url="http://new.test/", scheme="", credentials="")
    await desk.submit(follow_up)
    columns = "url, scheme, credentials, cursor, last_seq, due_at < now(), claim, lease_until, attempts, last_error"
    assert await world.query(f"SELECT {columns}, disabled_reason FROM tasks_app_pushconfig") == [
        ("http://new.test/", "", "", 2, 5, True, 4, None, 0, "", "")
    ]


async def test_a_config_begins_after_the_events_that_are_stored(world: World, desk: Desk, agent: AgentEntry) -> None:
    task = creation(agent.id)
    await desk.submit(task)
    await desk.submit(change(task.task_id, 1, seqs=[1, 2]))
    await configs.save(world.hosts[0].store, stored(task.task_id))
    assert await world.query("SELECT cursor, last_seq FROM tasks_app_pushconfig") == [(2, 2)]
    assert await notes(world, task.task_id) == (True, True)


async def test_no_event_slips_between_a_config_and_the_journal(world: World, desk: Desk, agent: AgentEntry) -> None:
    """A write that waits for the one who stores the config learns that there is one, although it had begun before."""
    task = creation(agent.id)
    await desk.submit(task)
    write = change(task.task_id, 1)
    async with world.locked_tasks():
        saving = asyncio.create_task(configs.save(world.hosts[0].store, stored(task.task_id)))
        await _blocked(world, 1)
        writing = asyncio.create_task(desk.submit(write))
        await _blocked(world, 2)
    await soon(saving)
    assert await soon(writing) == [True]
    ((cursor,),) = await world.query("SELECT cursor FROM tasks_app_pushconfig")
    assert (cursor, write.has_push_configs) == (0, True)
    assert await notes(world, task.task_id) == (True, True)


async def test_configs_are_deleted_with_their_task(world: World, desk: Desk, agent: AgentEntry) -> None:
    task, other = creation(agent.id), creation(agent.id)
    task.push_config, other.push_config = stored(task.task_id), stored(other.task_id)
    await desk.submit(task, other)
    await in_thread(lambda: Task.objects.get(pk=task.task_id).delete())
    assert await in_thread(lambda: list(PushConfig.objects.values_list("task_id", flat=True))) == [other.task_id]


def test_ids_of_tasks_never_begin_with_the_mark() -> None:
    assert new_id()[0] != "+"


async def _blocked(world: World, count: int) -> None:
    """Wait until so many statements wait for a lock."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(PATIENCE):
        while (await world.query(sql))[0][0] < count:  # noqa: ASYNC110 the database says so
            await asyncio.sleep(0.01)


async def test_simultaneous_configs_do_not_pass_the_limit(world: World, desk: Desk, agent: AgentEntry) -> None:
    """Several wait for the task's row at the same moment; each counts what the one before it has stored."""
    store = world.hosts[0].store
    task = creation(agent.id)
    await desk.submit(task)
    for number in range(CONFIGS_MAX - 1):
        assert await configs.save(store, stored(task.task_id, f"c{number}"))
    async with world.locked_tasks():
        saving = [asyncio.create_task(configs.save(store, stored(task.task_id, f"new-{n}"))) for n in range(4)]
        await _blocked(world, 4)
    assert sorted(await soon(asyncio.gather(*saving))) == [False, False, False, True]
    assert await configs.save(store, stored(task.task_id, "c7", url="http://replaced.test/"))
    assert await world.query("SELECT count(*) FROM tasks_app_pushconfig") == [(CONFIGS_MAX,)]


async def test_a_follow_up_with_one_too_many_loses(world: World, desk: Desk, agent: AgentEntry) -> None:
    """It had room when it set out, and waits for one that takes the last place."""
    store = world.hosts[0].store
    task = creation(agent.id)
    await desk.submit(task)
    for number in range(CONFIGS_MAX - 1):
        await configs.save(store, stored(task.task_id, f"c{number}"))
    follow_up, again = change(task.task_id, 1), change(task.task_id, 1)
    follow_up.push_config = stored(task.task_id, "late")
    again.push_config = stored(task.task_id, "c7", url="http://replaced.test/")
    async with world.locked_tasks():
        saving = asyncio.create_task(configs.save(store, stored(task.task_id, "last")))
        await _blocked(world, 1)
        writing = asyncio.create_task(desk.submit(follow_up))
        await _blocked(world, 2)
    assert await soon(saving) is True
    assert await soon(writing) == [False]
    assert await world.query("SELECT version, last_seq FROM tasks_app_task") == [(1, 0)]
    assert await desk.submit(again) == [True]
    assert await world.query("SELECT count(*) FROM tasks_app_pushconfig") == [(CONFIGS_MAX,)]
