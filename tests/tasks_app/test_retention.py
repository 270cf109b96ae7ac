"""Tasks whose time is over go, with all that hangs on them; everything else stays, and the counters are exact."""

from __future__ import annotations

import asyncio
import itertools
import re
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from agents.registry import AgentEntry
from agents.threads import in_thread
from protocol.errors import TaskNotFoundError
from protocol.requests import GetTaskRequest, ListTasksRequest
from protocol.states import TaskState
from protocol.timestamps import now
from tasks_app.content.storage import name_of
from tasks_app.models import StoredPart, Task
from tasks_app.operations.listing import list_tasks
from tasks_app.operations.sending import send_message
from tasks_app.operations.tasks import get_task
from tasks_app.retention.connection import BACKUP, CLEANING
from tasks_app.retention.keeping import EXPIRED, Kept, apply_retention
from tasks_app.retention.preview import preview
from tests.tasks_app.world import ALICE, BOB, World, request

RULES = {"keep_completed_days": 10, "keep_failed_days": 20, "keep_canceled_days": 30, "keep_rejected_days": 40}
DEPENDENT = ("message", "event", "receipt", "pushconfig", "delivery", "execution", "storedpart")
# A task with a row in every table, `days` after its state was reached.
_TASKS = """INSERT INTO tasks_app_task (id, agent_id, owner, context_id, state, status, status_at, created_at, last_seq,
        message_count, version, attempt, dialect, request, has_push_configs)
    SELECT i.id, %(agent)s, %(owner)s, 'c', %(state)s, '{}', now() - %(age)s - n * interval '1 ms', now(), 1, 1, 2, 1,
        'JSONRPC/1.0', '{}', true FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS i(id, n)"""
_DEPENDENTS = [
    """INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
        SELECT id, 1, 'm-' || id, 1, '{}', '', now() FROM unnest(%(ids)s::text[]) AS i(id)""",
    """INSERT INTO tasks_app_event (task_id, seq, kind, body, append, last_chunk, attempt, created_at)
        SELECT id, 1, 1, '{}', false, false, 1, now() FROM unnest(%(ids)s::text[]) AS i(id)""",
    """INSERT INTO tasks_app_receipt (agent_id, owner, message_id, task_id, digest, created_at)
        SELECT %(agent)s, %(owner)s, 'm-' || id, id, '', now() FROM unnest(%(ids)s::text[]) AS i(id)""",
    """INSERT INTO tasks_app_pushconfig (task_id, config_id, url, token, scheme, credentials, version, created_at,
            cursor, last_seq)
        SELECT id, 'c', 'http://e.test', '', '', '', '1.0', now(), 1, 1 FROM unnest(%(ids)s::text[]) AS i(id)""",
    """INSERT INTO tasks_app_delivery (task_id, config_id, seq, attempt, at, duration_ms, error, response)
        SELECT id, 'c', 1, 1, now(), 5, '', '' FROM unnest(%(ids)s::text[]) AS i(id)""",
    """INSERT INTO tasks_app_execution (task_id, attempt, worker, ended_at, state, fenced)
        SELECT id, 1, 'w', now(), %(state)s, false FROM unnest(%(ids)s::text[]) AS i(id)""",
]


async def store(
    world: World, entry: AgentEntry, state: TaskState, days: float, count: int = 1, owner: str = ALICE
) -> list[str]:
    """Tasks that came into a state so many days ago; their ids."""
    ((serial,),) = await world.query("SELECT count(*) FROM tasks_app_task")
    ids = [f"{state.number}-{serial + n:08}" for n in range(count)]
    parameters = {"ids": ids, "agent": entry.id, "owner": owner, "state": state.number, "age": timedelta(days=days)}
    for sql in (_TASKS, *_DEPENDENTS):
        await world.query(sql, parameters)
    return ids


async def ids_left(world: World) -> set[str]:
    return {row[0] for row in await world.query("SELECT id FROM tasks_app_task")}


async def ids_in(world: World, table: str) -> set[str]:
    return {row[0] for row in await world.query(f"SELECT task_id FROM tasks_app_{table}")}


async def check_counters(world: World) -> None:
    """The counters are what counting gives."""
    counted = "SELECT agent_id, owner, state, count(*) FROM tasks_app_task GROUP BY 1, 2, 3"
    kept = """SELECT agent_id, owner, state, sum(tasks)::bigint FROM tasks_app_taskcount GROUP BY 1, 2, 3
        HAVING sum(tasks) <> 0"""
    assert sorted(await world.query(kept)) == sorted(await world.query(counted))


async def apply(world: World, **options: Any) -> Kept:
    return await apply_retention(world.hosts[0].store, **({"pause": 0.0} | options))


async def test_every_state_has_its_own_time(world: World) -> None:
    keeper = await world.add_agent(**RULES)
    hoarder = await world.add_agent()
    going, staying = set[str](), set[str]()
    for state, days in (
        (TaskState.UNSPECIFIED, 10),
        (TaskState.COMPLETED, 10),
        (TaskState.FAILED, 20),
        (TaskState.CANCELED, 30),
        (TaskState.REJECTED, 40),
    ):
        going |= set(await store(world, keeper, state, days + 0.01, 2, ALICE))
        going |= set(await store(world, keeper, state, days + 0.01, 1, BOB))
        staying |= set(await store(world, keeper, state, days - 0.01))
        staying |= set(await store(world, hoarder, state, 1000))
    for state in (TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED):
        staying |= set(await store(world, keeper, state, 1000))
    assert await apply(world) == Kept(15, finished=True)
    assert await ids_left(world) == staying
    for table in DEPENDENT[:-1]:
        assert await ids_in(world, table) == staying, table
    await check_counters(world)
    assert await apply(world) == Kept(0, finished=True)


async def test_the_preview_says_what_goes_and_touches_nothing(world: World) -> None:
    keeper = await world.add_agent(keep_completed_days=10, keep_failed_days=1)
    await world.add_agent()
    await store(world, keeper, TaskState.COMPLETED, 11, 3)
    (waiting,) = await store(world, keeper, TaskState.COMPLETED, 12, 1, BOB)
    await store(world, keeper, TaskState.COMPLETED, 9)
    await world.query("UPDATE tasks_app_pushconfig SET due_at = now() WHERE task_id = %s", [waiting])
    before = await world.dump()
    found = await in_thread(lambda: list(preview()))
    assert await world.dump() == before
    assert [(e.rule.slug, e.rule.label, e.rule.days, e.tasks, e.waiting, e.rows, e.more) for e in found] == [
        (keeper.slug, "Direct reply", 10, 0, 0, 0, False),
        (keeper.slug, "Completed", 10, 4, 1, 12, False),
        (keeper.slug, "Failed", 1, 0, 0, 0, False),
    ]
    ((oldest,),) = await world.query("SELECT min(status_at) FROM tasks_app_task")
    assert found[1].oldest == oldest
    (_, capped, _) = await in_thread(lambda: list(preview(keeper.slug, most=2)))
    assert (capped.tasks, capped.more) == (3, True)


@pytest.mark.parametrize(
    ("config", "goes"),
    [
        ("due_at = NULL", True),
        ("due_at = now() + interval '1 hour'", False),
        ("due_at = now(), paused_at = now()", True),
        ("due_at = now(), disabled_reason = 'gone', disabled_at = now()", True),
        ("due_at = now(), paused_at = now(), resend = '{1}'", False),
    ],
)
async def test_a_webhook_that_is_still_to_be_told_keeps_its_task(world: World, config: str, goes: bool) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    await store(world, entry, TaskState.COMPLETED, 2)
    await world.query(f"UPDATE tasks_app_pushconfig SET {config}")
    assert (await apply(world)).deleted == goes


async def test_events_that_no_webhook_was_noted_for_keep_their_task(world: World) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    await store(world, entry, TaskState.COMPLETED, 2)
    await world.query("UPDATE tasks_app_task SET push_due_at = now()")
    assert await apply(world) == Kept(0, finished=True)


@pytest.mark.parametrize(("state", "goes"), [(TaskState.INPUT_REQUIRED, False), (TaskState.FAILED, True)])
async def test_an_unfinished_child_keeps_its_parent(world: World, state: TaskState, goes: bool) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    (parent,) = await store(world, entry, TaskState.COMPLETED, 2)
    (child,) = await store(world, entry, state, 0)
    await world.query("UPDATE tasks_app_task SET parent_id = %s WHERE id = %s", [parent, child])
    assert (await apply(world)).deleted == goes
    assert await ids_left(world) == ({child} if goes else {parent, child})


async def test_a_task_that_somebody_writes_to_goes_another_time_and_keeps_nobody_waiting(world: World) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    await store(world, entry, TaskState.COMPLETED, 2, 3)
    async with await psycopg.AsyncConnection.connect(world.dsn) as writer:
        await writer.execute("SELECT FROM tasks_app_task WHERE id = '3-00000001' FOR UPDATE")
        assert await apply(world) == Kept(2, finished=True)
        await writer.rollback()
    assert await apply(world) == Kept(1, finished=True)


async def test_many_go_in_small_batches_across_many_owners_while_others_write(world: World) -> None:
    """Counters stay exact, and what is written meanwhile stays."""
    entry = await world.add_agent(keep_completed_days=1)
    for owner in range(7):
        await store(world, entry, TaskState.COMPLETED, 2, 60 + owner, f"owner-{owner}")
    kept = await store(world, entry, TaskState.COMPLETED, 0.5, 40, "owner-3")
    ended = asyncio.Event()
    sent: list[str] = []

    async def write() -> None:
        while not ended.is_set():
            answer = await send_message(world.call(entry, "owner-3"), request("hello"))
            sent.append(answer.record.id)

    writers = [asyncio.create_task(write()) for _ in range(4)]
    assert await apply(world, batch=10) == Kept(sum(60 + n for n in range(7)), finished=True)
    ended.set()
    await asyncio.gather(*writers)
    assert await ids_left(world) == {*kept, *sent}
    assert len(sent) > 4
    await check_counters(world)


async def test_a_run_ends_when_its_time_is_over_and_the_next_one_goes_on(world: World) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    await store(world, entry, TaskState.COMPLETED, 2, 5)
    assert await apply(world, batch=1, seconds=0.0) == Kept(0, finished=False)
    assert await apply(world, batch=2, seconds=0.5, pause=0.5) == Kept(2, finished=False)
    assert await apply(world, batch=2, seconds=60) == Kept(3, finished=True)


async def test_a_task_with_very_many_events_is_a_batch_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.retention.keeping._MOST_ROWS", 4)
    entry = await world.add_agent(keep_completed_days=1)
    await store(world, entry, TaskState.COMPLETED, 2, 6)
    await world.query("UPDATE tasks_app_task SET last_seq = 100 WHERE id < '3-00000003'")
    assert await apply(world) == Kept(6, finished=True)


@pytest.mark.parametrize("lock", [CLEANING, BACKUP])
async def test_nothing_goes_while_another_process_deletes_or_a_backup_is_made(world: World, lock: int) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    await store(world, entry, TaskState.COMPLETED, 2)
    await world.query("SELECT pg_advisory_lock(%s)", [lock])
    assert await apply(world) == Kept(0, finished=False)
    await world.query("SELECT pg_advisory_unlock(%s)", [lock])
    assert await apply(world) == Kept(1, finished=True)


async def test_only_the_agent_that_is_asked_for(world: World) -> None:
    one, other = [await world.add_agent(keep_completed_days=1) for _ in range(2)]
    await store(world, one, TaskState.COMPLETED, 2)
    kept = await store(world, other, TaskState.COMPLETED, 2)
    assert await apply(world, slug=one.slug) == Kept(1, finished=True)
    assert await ids_left(world) == set(kept)


@pytest.mark.spec("3.1.4")
async def test_readers_find_the_next_page_and_no_task_that_is_gone(world: World) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    old = await store(world, entry, TaskState.COMPLETED, 2, 3)
    young = await store(world, entry, TaskState.COMPLETED, 0.5, 4)
    call = world.call(entry)
    first = await list_tasks(call, ListTasksRequest(page_size=2))
    assert (first.total_size, len(first.records)) == (7, 2)
    await apply(world)
    second = await list_tasks(call, ListTasksRequest(page_size=3, page_token=first.next_page_token))
    assert [r.id for r in [*first.records, *second.records]] == young
    assert (second.total_size, second.next_page_token) == (4, "")
    with pytest.raises(TaskNotFoundError):
        await get_task(call, GetTaskRequest(id=old[0]))


async def test_a_message_whose_task_is_gone_makes_a_new_one(world: World) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    first = await send_message(world.call(entry), request("hello", message_id="m-1"))
    await world.query("UPDATE tasks_app_task SET status_at = now() - interval '2 days'")
    assert await apply(world) == Kept(1, finished=True)
    second = await send_message(world.call(entry), request("other words", message_id="m-1"))
    assert second.record.id != first.record.id
    await check_counters(world)


async def test_expired_tasks_are_found_by_an_index(world: World) -> None:
    """However many tasks there are that stay, of this agent and of others."""
    entry = await world.add_agent(keep_completed_days=1)
    await store(world, entry, TaskState.COMPLETED, 0.5, 3000)
    await world.query("ANALYZE tasks_app_task")
    numbers = itertools.count(1)
    sql = re.sub(r"%\(\w+\)s", lambda _: f"${next(numbers)}", EXPIRED)
    async with await psycopg.AsyncConnection.connect(world.dsn) as connection:
        explained = connection.pgconn.exec_(f"EXPLAIN (GENERIC_PLAN) {sql}".encode())
        assert explained.status == psycopg.pq.ExecStatus.TUPLES_OK, explained.error_message
        plan = [bytes(explained.get_value(n, 0) or b"").decode() for n in range(explained.ntuples)]
    (place,) = [n for n, line in enumerate(plan) if "Index Scan Backward using task_list_state" in line]
    condition = plan[place + 1]
    for part in ("agent_id =", "owner)::text =", "state =", "status_at <", "ROW(status_at, (id)::text) >"):
        assert part in condition, plan
    assert not any("Sort" in line for line in plan[place - 1 :]), plan


async def test_files_go_with_their_tasks(world: World) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    (going,) = await store(world, entry, TaskState.COMPLETED, 2)
    (staying,) = await store(world, entry, TaskState.COMPLETED, 0.5)
    names = {task_id: await in_thread(lambda i=task_id: add_file(entry, i)) for task_id in (going, staying)}
    assert [e.size > 5 for e in await in_thread(lambda: list(preview()))] == [False, True]
    await apply(world)
    assert await ids_in(world, "storedpart") == {staying}
    assert [default_storage.exists(names[i]) for i in (going, staying)] == [False, True]
    default_storage.delete(names[staying])


def add_file(entry: AgentEntry, task_id: str) -> str:
    """A file of five bytes of a task; its name."""
    part_id = f"part-{task_id}"
    name = default_storage.save(name_of(part_id), ContentFile(b"12345"))
    StoredPart.objects.create(
        id=part_id, agent_id=entry.id, task_id=task_id, name=name, size=5, digest="", created_at=now()
    )
    Task.objects.filter(pk=task_id).update(has_stored_parts=True)
    return name


async def test_the_command_shows_and_deletes(world: World) -> None:
    entry = await world.add_agent(keep_completed_days=1)
    await world.add_agent()
    await store(world, entry, TaskState.COMPLETED, 2, 3)
    (held,) = await store(world, entry, TaskState.COMPLETED, 3)
    await world.query("UPDATE tasks_app_pushconfig SET due_at = now() WHERE task_id = %s", [held])
    ((oldest,),) = await world.query("SELECT to_char(min(status_at), 'YYYY-MM-DD') FROM tasks_app_task")
    reply, completed = (await command("preview")).splitlines()
    assert reply == f"{entry.slug:24} Direct reply  kept 1 days: 0 tasks to go"
    start = f"{entry.slug:24} Completed     kept 1 days: 4 tasks to go, the oldest of {oldest}, 12 rows, about "
    assert completed.startswith(start)
    assert completed.endswith("; 1 of them wait for a webhook or a delegated task")
    assert await command("apply", "--agent", entry.slug) == "Deleted 3 tasks.\n"
    assert await ids_left(world) == {held}
    with pytest.raises(CommandError, match=r"^agent: There is no agent nobody\.$"):
        await command("apply", "--agent", "nobody")


async def command(*words: str) -> str:
    """What `manage.py retention` prints. It has an event loop of its own, as it would have in a shell."""

    def run() -> str:
        output = StringIO()
        call_command("retention", *words, stdout=output)
        return output.getvalue()

    return await in_thread(run)
