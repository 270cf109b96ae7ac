"""The task at every earlier event, compared with what was stored when that event was the newest."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Raw

from agents.runtimes.base import Run, Updates
from protocol.states import TaskState
from tasks_app.operations import send_message
from tasks_app.operations.sending import start_task
from tasks_app.tables.past import task_at
from tests.tasks_app.world import World, chunk, request, say, soon, until


@dataclass
class Album:
    """An agent that talks over several turns; `pictures` are the task by its last seq, while that was the newest."""

    world: World
    pictures: dict[int, Any]

    async def __call__(self, run: Run, updates: Updates) -> None:
        steps = self.first(updates) if run.task is None else self.later(updates)
        for step in steps:
            await step
            await self.take(run.task_id)

    def first(self, updates: Updates) -> list[Any]:
        return [
            updates.status(TaskState.WORKING, say("I begin."), Raw(b'{"a":1,"b":1}')),
            updates.artifact(chunk("1", "x")),
            updates.status(TaskState.WORKING),
            updates.status(TaskState.WORKING, metadata=Raw(b'{"b":2}')),
            updates.artifact(chunk("2", "x"), append=True),
            updates.status(TaskState.INPUT_REQUIRED, say("Which one?")),
        ]

    def later(self, updates: Updates) -> list[Any]:
        return [
            updates.artifact(chunk("3", "x")),
            updates.status(TaskState.WORKING, say("Nearly."), Raw(b'{"c":{"d":[1]}}')),
            updates.artifact(chunk("4", "y")),
            updates.status(TaskState.AUTH_REQUIRED),
        ]

    async def take(self, task_id: str) -> None:
        (host,) = self.world.hosts
        draft = host.executions[task_id]
        await until(lambda: not draft._draft.events and not draft._writing, "what was said to be stored")
        record = await self.world.load(task_id)
        self.pictures[record.last_seq] = json.loads(record.render())


async def test_the_task_at_every_event_is_what_was_stored_then(world: World) -> None:
    album = Album(world, {})
    entry = await world.add_agent(album)
    call = world.call(entry)
    first = await soon(send_message(call, request("hi")))
    for text in ("this", "that", "both"):
        await soon(send_message(call, request(text, task_id=first.record.id)))
    record = await world.load(first.record.id)
    past = await world.hosts[0].store.past(record.id)
    assert record.last_seq == 5 + 3 * 5
    assert len(record.history) == 1 + 2 + 3 + 3
    assert len(album.pictures) == 5 + 3 * 4  # all but the follow-ups' own WORKING
    for seq, picture in album.pictures.items():
        assert json.loads(task_at(record, seq, past).render()) == picture, seq
    before = json.loads(task_at(record, 0, past).render())
    assert (before["status"]["state"], len(before["history"])) == ("TASK_STATE_SUBMITTED", 1)
    assert {"artifacts", "metadata"}.isdisjoint(before)
    assert json.loads(task_at(record, 6, past).render())["history"][-1]["parts"] == [{"text": "this"}]
    assert record.last_seq == 20, "the record itself is left alone"


async def test_what_a_task_was_made_with_stays(world: World) -> None:
    entry = await world.add_agent(Album(world, {}))
    begun = await soon(start_task(world.call(entry), request("hi"), metadata='{"made":"so","a":0}'))
    await until(lambda: begun.id not in world.hosts[0].executions, "the end of the turn")
    record = await world.load(begun.id)
    past = await world.hosts[0].store.past(record.id)
    assert [task_at(record, seq, past).metadata for seq in (0, 1, 5)] == [
        '{"made":"so"}',  # what `a` was is not known any more
        '{"made":"so","a":1,"b":1}',
        record.metadata,
    ]
    assert record.metadata is not None
    assert json.loads(record.metadata) == {"made": "so", "a": 1, "b": 2}
    assert task_at(replace(record, metadata=None), 0, past).metadata is None
