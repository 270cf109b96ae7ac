"""Files come and go with their tasks, and never beyond a limit; those that nobody came to name are deleted."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from django.conf import settings

from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.errors import InvalidParamsError
from protocol.ids import new_id
from protocol.model import Artifact, Part
from protocol.requests import CancelTaskRequest
from protocol.states import TaskState
from tasks_app.content import storage
from tasks_app.content.keeping import LimitExceededError, keep_parts
from tasks_app.content.removal import remove_parts_of
from tasks_app.content.unnamed import remove_unnamed
from tasks_app.operations import cancel_task, send_message
from tests.tasks_app.world import PATIENCE, World, request, soon

_ANY_AGE = -1.0
_IDS = "SELECT id, confirmed FROM tasks_app_storedpart ORDER BY id"
BIG = "x" * 2000


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are big from a kilobyte on."""
    monkeypatch.setattr(settings, "STORED_PART_BYTES", 1024)


def exists(part_id: str) -> bool:
    """Whether the file of a part is there."""
    return (Path(settings.LAYOUT.parts) / part_id[-2:] / part_id).is_file()


async def keep(world: World, entry: AgentEntry, task_id: str, size: int = 2000) -> list[str]:
    """Store a part for a task that need not exist."""
    return (await keep_parts(world.hosts[0].store, entry, task_id, [Part(text="x" * size)])).ids


async def test_files_without_a_task_are_deleted_after_a_day(world: World, agent: AgentEntry) -> None:
    store = world.hosts[0].store
    (part_id,) = await keep(world, agent, new_id())
    assert await remove_unnamed(store) == 0
    assert exists(part_id)
    await world.query("UPDATE tasks_app_storedpart SET created_at = now() - interval '25 hours'")
    assert await remove_unnamed(store) == 1
    assert not exists(part_id)
    assert await world.query(_IDS) == []


class Gate:
    """Writes files once it is open. A thread that writes cannot be stopped, unlike the run that waits for it."""

    def __init__(self) -> None:
        self.reached, self.open, self.passed = threading.Event(), threading.Event(), threading.Event()
        self.written: list[str] = []
        self._write = storage.write

    def write(self, part_id: str, content: storage.Content) -> None:
        """See `storage.write`."""
        self.reached.set()
        assert self.open.wait(PATIENCE)
        self._write(part_id, content)
        self.written.append(part_id)
        if len(self.written) == 2:
            self.passed.set()


async def test_files_that_a_canceled_run_writes_on_are_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written after the cancel has its row, so that the look for files without a task finds it."""
    gate = Gate()
    monkeypatch.setattr(storage, "write", gate.write)

    async def say_much(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await updates.artifact(Artifact(artifact_id="much", parts=[Part(text=BIG), Part(text=BIG)]))

    entry = await world.add_agent(say_much)
    task_id = (await soon(send_message(world.call(entry), request(immediately=True)))).record.id
    assert await asyncio.to_thread(gate.reached.wait, PATIENCE)
    record = await soon(cancel_task(world.call(entry), CancelTaskRequest(id=task_id)))
    assert record.state is TaskState.CANCELED
    gate.open.set()
    assert await asyncio.to_thread(gate.passed.wait, PATIENCE)
    assert [exists(part_id) for part_id in gate.written] == [True, True]
    assert await world.query(_IDS) == [(part_id, False) for part_id in sorted(gate.written)]
    assert await remove_unnamed(world.hosts[0].store) == 0
    assert await remove_unnamed(world.hosts[0].store, _ANY_AGE) == 2
    assert [exists(part_id) for part_id in gate.written] == [False, False]
    assert await world.query(_IDS) == []


async def test_files_that_a_task_does_not_name_are_deleted(world: World, agent: AgentEntry) -> None:
    store = world.hosts[0].store
    answer = await send_message(world.call(agent), request(BIG))
    named = [row[0] for row in await world.query(_IDS)]
    (lost,) = await keep(world, agent, answer.record.id)
    assert await remove_unnamed(store, _ANY_AGE) == 1
    assert await world.query(_IDS) == [(part_id, True) for part_id in named]
    assert [exists(part_id) for part_id in (*named, lost)] == [True] * len(named) + [False]
    assert await remove_unnamed(store, _ANY_AGE) == 0


async def test_the_files_of_tasks_go_with_them(world: World, agent: AgentEntry) -> None:
    store = world.hosts[0].store
    gone, stays = [(await send_message(world.call(agent), request(BIG))).record.id for _ in range(2)]
    before = dict(await world.query("SELECT id, task_id FROM tasks_app_storedpart"))
    assert await remove_parts_of(store, [gone]) == 2
    assert {part_id: exists(part_id) for part_id in before} == {i: task == stays for i, task in before.items()}
    assert await remove_parts_of(store, [gone]) == 0
    assert set(await world.query("SELECT task_id FROM tasks_app_storedpart")) == {(stays,)}


async def test_no_number_of_writers_gets_beyond_a_limit(world: World) -> None:
    """What is on its way counts like what is there: of ten files, four fit the agent, and three the task."""
    by_agent = await world.add_agent(max_stored_bytes=8000, max_task_bytes=100_000)
    tries = await asyncio.gather(*(keep(world, by_agent, new_id()) for _ in range(10)), return_exceptions=True)
    assert [type(t) for t in tries if not isinstance(t, list)] == [LimitExceededError] * 6
    by_task = await world.add_agent(max_task_bytes=7999)
    task_id = new_id()
    tries = await asyncio.gather(*(keep(world, by_task, task_id) for _ in range(10)), return_exceptions=True)
    assert sum(isinstance(t, list) for t in tries) == 3
    sums = await world.query("SELECT agent_id, sum(size)::int FROM tasks_app_storedpart GROUP BY 1 ORDER BY 1")
    assert sums == [(by_agent.id, 8000), (by_task.id, 6000)]


async def test_a_refused_message_leaves_no_row(world: World) -> None:
    entry = await world.add_agent(max_task_bytes=3000)
    sent = request(BIG)
    sent.message.parts.append(Part(text="y" * 2000))
    with pytest.raises(InvalidParamsError) as refusal:
        await send_message(world.call(entry), sent)
    (violation,) = refusal.value.violations
    assert (violation.field, violation.description) == (
        "message.parts[1]",
        "would bring the files of the task to 4000 bytes; at most 3000 are allowed (max_task_bytes)",
    )
    assert await world.query(_IDS) == []
    assert await world.query("SELECT id FROM tasks_app_task") == []


async def test_an_agent_that_says_too_much_fails_its_task(world: World) -> None:
    entry = await world.add_agent(max_task_bytes=3000)
    record = (await send_message(world.call(entry), request(BIG))).record  # the echo would be as much again
    assert record.state is TaskState.FAILED
    assert "part 1 would bring the files of the task to 4000 bytes; at most 3000 are allowed (max_task_bytes)" in (
        record.status
    )
    assert [row[1] for row in await world.query("SELECT id, size FROM tasks_app_storedpart")] == [2000]
