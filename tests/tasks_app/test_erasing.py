"""Everything of one principal or one context goes, running work too, and nothing of anybody else."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connections

from agents.models import ApiKey
from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from agents.threads import in_thread
from protocol.requests import GetTaskRequest, SubscribeToTaskRequest
from protocol.states import TaskState
from tasks_app.models import AuditEntry, Erasure
from tasks_app.operations.sending import send_message
from tasks_app.operations.streaming import subscribe_to_task
from tasks_app.operations.tasks import get_task
from tasks_app.retention import erasing, housekeeping
from tasks_app.retention.connection import BACKUP
from tasks_app.retention.erasing import UnfinishedError, run_erasure
from tasks_app.retention.requests import find, request_erasure
from tasks_app.retention.scope import Scope
from tests.tasks_app.test_retention import DEPENDENT, add_file, check_counters, ids_in, ids_left, store
from tests.tasks_app.world import ALICE, BOB, World, complete, request, soon, work

CAROL = "carol"
USAGE = """INSERT INTO agents_usage
        (agent_id, binding, version, operation, caller, calls, errors, first_seen, last_seen)
    VALUES (%s, 'JSONRPC', '1.0', 'SendMessage', %s, %s, 1, now(), now())"""
IN_BATCHES = ("delete_ended", "remove_parts_of")
USED = "SELECT agent_id, caller, sum(calls)::int, sum(errors)::int FROM agents_usage GROUP BY 1, 2 ORDER BY 1, 2"


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.RETENTION_PAUSE = 0.0
    settings.RETENTION_BATCH = 3


async def erase(world: World, scope: Scope, with_keys: bool = False) -> Erasure:
    erasure = await in_thread(lambda: request_erasure(scope, "staff", with_keys))
    return await soon(run_erasure(world.hosts[0], erasure.pk))


async def names_of(world: World, name: str) -> list[str]:
    """Columns of texts in which a name is still to be found."""
    columns = await world.query(
        """SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'
            AND data_type IN ('text', 'character varying', 'jsonb') ORDER BY 1, 2"""
    )
    found = []
    for table, column in columns:
        ((count,),) = await world.query(f'SELECT count(*) FROM "{table}" WHERE "{column}"::text LIKE %s', [f"%{name}%"])
        if count:
            found.append(f"{table}.{column}")
    return found


async def test_everything_of_a_principal_goes_and_nothing_of_others(world: World) -> None:
    agents = [await world.add_agent(), await world.add_agent()]
    going, staying = list[str](), list[str]()
    for entry, state in itertools.product(agents, (TaskState.UNSPECIFIED, TaskState.COMPLETED, TaskState.FAILED)):
        going += await store(world, entry, state, 1, 3, ALICE)
        staying += await store(world, entry, state, 1, 2, BOB)
    name = await in_thread(lambda: add_file(agents[0], going[0]))
    for entry, caller, calls in ((agents[0], ALICE, 5), (agents[0], BOB, 7), (agents[1], ALICE, 11)):
        await world.query(USAGE, [entry.id, caller, calls])
    await in_thread(lambda: ApiKey.issue("key of alice", ALICE))
    done = await erase(world, Scope(owner=ALICE), with_keys=True)
    assert (done.tasks, done.finished_at is not None, done.problem) == (18, True, "")
    assert await ids_left(world) == set(staying)
    for table in DEPENDENT[:-1]:
        assert await ids_in(world, table) == set(staying), table
    assert not default_storage.exists(name)
    await check_counters(world)
    assert sorted(await world.query(USED)) == sorted(
        [(agents[0].id, "(erased)", 5, 1), (agents[0].id, BOB, 7, 1), (agents[1].id, "(erased)", 11, 1)]
    )
    await in_thread(lambda: Erasure.objects.update(owner=""))  # as `forget_names` does
    assert await names_of(world, ALICE) == []
    (entry,) = await in_thread(lambda: list(AuditEntry.objects.all()))
    assert (entry.actor, entry.action) == ("staff", "data.erase")
    assert entry.detail == f"Erased everything of {Scope(owner=ALICE).reference}: 18 tasks, with its API keys."


async def test_running_tasks_are_cancelled_first_and_their_streams_end(world: World) -> None:
    stopped = asyncio.Event()

    async def run(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    entry = await world.add_agent(run)
    other = await world.start_host()
    call = world.call(entry, host=other)
    running = (await send_message(call, request("go", immediately=True))).record
    stream = await subscribe_to_task(world.call(entry), SubscribeToTaskRequest(id=running.id))
    bobs = (await send_message(world.call(entry, BOB), request("go", immediately=True))).record
    done = await erase(world, Scope(owner=ALICE))
    assert done.tasks == 1
    await soon(stopped.wait())
    frames = [frame async for frame in stream if frame.payload]
    assert b"TASK_STATE_CANCELED" in (frames[-1].payload or b"")
    await stream.aclose()
    assert await ids_left(world) == {bobs.id}
    assert (await get_task(world.call(entry, BOB), GetTaskRequest(id=bobs.id))).state is TaskState.WORKING
    await check_counters(world)


async def test_one_context_of_an_agent_goes_with_what_it_delegated(world: World) -> None:
    entry, helper = await world.add_agent(complete), await world.add_agent(work)
    here = await send_message(world.call(entry), request("hi", context_id="c-1"))
    there = await send_message(world.call(entry), request("hi", context_id="c-2"))
    bobs = await send_message(world.call(entry, BOB), request("hi", context_id="c-1"))
    same_id = await send_message(world.call(helper), request("hi", context_id="c-1", immediately=True))
    (child,) = await store(world, helper, TaskState.INPUT_REQUIRED, 0, 1, ALICE)
    await world.query("UPDATE tasks_app_task SET parent_id = %s WHERE id = %s", [here.record.id, child])
    await world.query(USAGE, [entry.id, ALICE, 5])
    done = await erase(world, Scope(owner=ALICE, agent=entry.slug, context_id="c-1"))
    assert done.tasks == 2
    assert await ids_left(world) == {there.record.id, bobs.record.id, same_id.record.id}
    assert await world.query(USED) == [(entry.id, ALICE, 5, 1)]
    await erase(world, Scope(agent=entry.slug, context_id="c-1"))
    assert await ids_left(world) == {there.record.id, same_id.record.id}
    await check_counters(world)


@pytest.mark.parametrize("step", ["delete_ended", "remove_parts_of", "delete_receipts", "drop_counters"])
async def test_a_run_that_died_anywhere_is_taken_up_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    entry = await world.add_agent()
    await store(world, entry, TaskState.COMPLETED, 1, 10, ALICE)
    kept = await store(world, entry, TaskState.COMPLETED, 1, 1, BOB)
    asked = await in_thread(lambda: request_erasure(Scope(owner=ALICE), "staff"))
    with monkeypatch.context() as patch:
        patch.setattr(erasing, step, _dying_at(getattr(erasing, step), 2 if step in IN_BATCHES else 1))
        with pytest.raises(asyncio.CancelledError):
            await run_erasure(world.hosts[0], asked.pk)
    assert (await in_thread(lambda: Erasure.objects.get())).finished_at is None
    again = await in_thread(lambda: request_erasure(Scope(owner=ALICE), "somebody else"))
    assert again.pk == asked.pk
    await housekeeping.keep_house(world.hosts[0])
    done = await in_thread(lambda: Erasure.objects.get())
    assert (done.tasks, done.finished_at is not None) == (10, True)
    assert await ids_left(world) == set(kept)
    await check_counters(world)
    assert len(await in_thread(lambda: list(AuditEntry.objects.all()))) == 1


async def test_an_erasure_has_not_ended_before_its_line_is_in_the_audit_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await in_thread(lambda: request_erasure(Scope(owner=ALICE), "staff"))

    def dies(**_: Any) -> None:
        raise RuntimeError("the process dies")

    with monkeypatch.context() as patch:
        patch.setattr(AuditEntry.objects, "create", dies)
        with pytest.raises(RuntimeError, match="the process dies"):
            await in_thread(lambda: erasing.finish(asked))
    assert (await in_thread(lambda: Erasure.objects.get())).finished_at is None
    await housekeeping.keep_house(world.hosts[0])
    assert (await in_thread(lambda: Erasure.objects.get())).finished_at is not None
    assert await in_thread(lambda: AuditEntry.objects.count()) == 1


def _dying_at(step: Callable[..., Any], number: int) -> Callable[..., Any]:
    calls = itertools.count(1)

    async def dying(*args: Any) -> Any:
        if next(calls) == number:
            raise asyncio.CancelledError
        return await step(*args)

    return dying


async def test_it_waits_for_a_backup_and_says_so(world: World) -> None:
    entry = await world.add_agent()
    kept = await store(world, entry, TaskState.COMPLETED, 1)
    await world.query("SELECT pg_advisory_lock(%s)", [BACKUP])
    with pytest.raises(UnfinishedError, match="A backup is being made"):
        await erase(world, Scope(owner=ALICE))
    assert await ids_left(world) == set(kept)
    assert (await in_thread(lambda: Erasure.objects.get())).problem == "A backup is being made."
    await world.query("SELECT pg_advisory_unlock(%s)", [BACKUP])
    await housekeeping.keep_house(world.hosts[0])
    done = await in_thread(lambda: Erasure.objects.get())
    assert (done.tasks, done.problem) == (1, "")


async def test_the_name_is_forgotten_once_no_process_can_have_it_in_its_counters(world: World) -> None:
    entry = await world.add_agent()
    done = await erase(world, Scope(owner=ALICE))
    await world.query(USAGE, [entry.id, ALICE, 3])  # A process wrote what it had counted before.
    await housekeeping.keep_house(world.hosts[0])
    assert (await in_thread(lambda: Erasure.objects.get())).owner == ALICE
    await world.query("UPDATE tasks_app_erasure SET finished_at = now() - interval '1 minute'")
    await housekeeping.keep_house(world.hosts[0])
    assert await names_of(world, ALICE) == []
    assert await world.query(USED) == [(entry.id, "(erased)", 3, 1)]
    assert (await in_thread(lambda: Erasure.objects.get())).reference == done.reference


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        (Scope(), "owner"),
        (Scope(agent="nobody"), "owner"),
        (Scope(context_id="c"), "agent"),
        (Scope(owner=ALICE, context_id="c"), "agent"),
        (Scope(owner=ALICE, agent="nobody"), "agent"),
    ],
)
async def test_what_may_not_be_asked_for(world: World, scope: Scope, field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        await in_thread(lambda: request_erasure(scope, "staff"))
    assert list(refusal.value.message_dict) == [field]
    assert await in_thread(lambda: Erasure.objects.count()) == 0


async def test_keys_go_with_all_of_their_owner_only(world: World, agent: AgentEntry) -> None:
    with pytest.raises(ValidationError) as refusal:
        await in_thread(lambda: request_erasure(Scope(owner=ALICE, agent=agent.slug), "staff", with_keys=True))
    assert list(refusal.value.message_dict) == ["with_keys"]


async def test_what_is_found_is_counted_and_not_touched(world: World) -> None:
    entry = await world.add_agent()
    await store(world, entry, TaskState.COMPLETED, 1, 3, ALICE)
    await store(world, entry, TaskState.INPUT_REQUIRED, 1, 2, ALICE)
    await store(world, entry, TaskState.COMPLETED, 1, 4, BOB)
    await world.query(USAGE, [entry.id, ALICE, 5])
    await in_thread(lambda: ApiKey.issue("k", ALICE))
    before = await world.dump()
    found = await in_thread(lambda: find(Scope(owner=ALICE)))
    assert await world.dump() == before
    assert found.tasks == [
        (entry.slug, ALICE, TaskState.COMPLETED, 3),
        (entry.slug, ALICE, TaskState.INPUT_REQUIRED, 2),
    ]
    assert (found.total, found.unfinished, found.keys, found.usage) == (5, 2, 1, 1)
    assert (await in_thread(lambda: find(Scope(agent=entry.slug, context_id="c")))).total == 9


async def test_the_command_shows_asks_and_erases(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = await world.add_agent()
    await store(world, entry, TaskState.COMPLETED, 1, 3, ALICE)
    kept = await store(world, entry, TaskState.COMPLETED, 1, 1, BOB)
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    monkeypatch.setattr("builtins.input", lambda _: BOB)
    with pytest.raises(CommandError, match=r"^Nothing was erased\.$"):
        await command("--owner", ALICE)
    assert len(await ids_left(world)) == 4
    with pytest.raises(CommandError, match=r"^agent: A context belongs to an agent"):
        await command("--context", "c")
    monkeypatch.setattr("builtins.input", lambda _: ALICE)
    lines = (await command("--owner", ALICE)).splitlines()
    assert lines == [
        f"{entry.slug:24} {ALICE:24} {'COMPLETED':15} 3",
        "To erase: 3 tasks, 0 of them cancelled first.",
        f"The audit log calls it {Scope(owner=ALICE).reference}.",
        "Erased 3 tasks.",
    ]
    assert await ids_left(world) == set(kept)
    assert (await command("--owner", CAROL, "--yes")).splitlines()[0].startswith("To erase: 0 tasks")


async def command(*words: str) -> str:
    def run() -> str:
        output = StringIO()
        try:
            call_command("erase", *words, stdout=output)
        finally:
            connections.close_all()
        return output.getvalue()

    return await asyncio.to_thread(run)
