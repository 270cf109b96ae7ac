"""Random programs of callers, agents, sweeps and deaths over two hosts: what must always be true is true afterwards."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.errors import A2AError, InvalidAgentResponseError
from protocol.requests import CancelTaskRequest, ListTasksRequest, SubscribeToTaskRequest
from protocol.states import TERMINAL, TaskState
from tasks_app.execution.sweeping import sweep
from tasks_app.operations import cancel_task, list_tasks, send_message, stream_message, subscribe_to_task
from tasks_app.operations.streaming import TaskStream
from tasks_app.tables.past import task_at
from tests.tasks_app.checks import check_everything
from tests.tasks_app.conftest import empty_tables
from tests.tasks_app.world import World, beat, chunk, request, say, soon, until

REPORTED = [s for s in TaskState if s not in (TaskState.UNSPECIFIED, TaskState.SUBMITTED)]

# What an agent does in one turn, as JSON that travels in the message.
acts = st.one_of(
    st.tuples(st.just("status"), st.sampled_from([s.value for s in REPORTED]), st.booleans()),
    st.tuples(st.just("chunk"), st.sampled_from(["x", "y"]), st.booleans(), st.booleans()),
    st.tuples(st.just("pause"), st.integers(0, 3)),
    st.tuples(st.just("reply")),
    st.tuples(st.just("raise")),
)
scripts = st.lists(acts, max_size=7)
manners = st.sampled_from(["obey", "swallow", "finish"])
# What happens from outside: (what, which host, which task, an agent's script, how it takes a cancellation).
moves = st.tuples(
    st.sampled_from(
        ["send", "send", "send", "stream", "follow up", "follow up", "repeat", "cancel", "subscribe", "expire", "list"]
    ),
    st.integers(0, 1),
    st.integers(0, 5),
    scripts,
    manners,
)
programs = st.lists(moves, min_size=1, max_size=14)


async def perform(run: Run, updates: Updates) -> None:
    """An agent whose message says what it does. It goes on after what it may not do."""
    script, manner = json.loads(run.text)
    for number, act in enumerate(script):
        try:
            await perform_act(updates, act, number)
        except InvalidAgentResponseError:
            continue
        except asyncio.CancelledError:
            if manner == "obey":
                raise
            if manner == "finish":
                await updates.status(TaskState.COMPLETED)
                return


async def perform_act(updates: Updates, act: list[Any], number: int) -> None:
    kind, *values = act
    if kind == "status":
        await updates.status(TaskState(values[0]), say(f"said {number}") if values[1] else None)
    elif kind == "chunk":
        name, append, last_chunk = values
        await updates.artifact(chunk(f"{number},", name), append=append, last_chunk=last_chunk)
    elif kind == "reply":
        await updates.reply(say("just this"))
    elif kind == "raise":
        raise RuntimeError("as asked")
    for _ in range(values[0] if kind == "pause" else 1):
        await asyncio.sleep(0)


class Play:
    """One program's run: the tasks that there are, and the streams that watch them."""

    def __init__(self, world: World, entry: AgentEntry) -> None:
        self.world = world
        self.entry = entry
        self.tasks: list[str] = []
        self.sent: list[tuple[str, str, str]] = []
        self.watching: list[asyncio.Task[list[dict[str, Any]]]] = []
        self._beating = asyncio.Lock()

    async def make(self, move: tuple[str, int, int, list[Any], str]) -> None:
        """One move. A refusal is an answer like any other."""
        what, host, which, script, manner = move
        call = self.world.call(self.entry, host=self.world.hosts[host])
        text, task_id = json.dumps([script, manner]), self.tasks[which % len(self.tasks)] if self.tasks else ""
        try:
            if what == "send":
                answer = await send_message(call, self._request(text, ""))
                self.tasks.append(answer.record.id)
            elif what == "stream":
                self._watch(await stream_message(call, self._request(text, "")))
            elif what == "follow up" and task_id:
                await send_message(call, self._request(text, task_id))
            elif what == "repeat" and self.sent:
                text, task_id, message_id = self.sent[which % len(self.sent)]
                await send_message(call, request(text, task_id=task_id, message_id=message_id, immediately=True))
            elif what == "cancel" and task_id:
                await cancel_task(call, CancelTaskRequest(id=task_id))
            elif what == "subscribe" and task_id:
                self._watch(await subscribe_to_task(call, SubscribeToTaskRequest(id=task_id)))
            elif what == "expire":
                await self._expire(host)
            elif what == "list":
                await list_tasks(call, ListTasksRequest(page_size=2, include_artifacts=True))
        except A2AError:
            return

    def _request(self, text: str, task_id: str) -> Any:
        made = request(text, task_id=task_id, immediately=True)
        self.sent.append((text, task_id, made.message.message_id))
        return made

    async def _expire(self, host: int) -> None:
        """Every lease is over at this moment, and one host looks twice."""
        await self.world.query(
            "UPDATE tasks_app_task SET lease_until = now() - interval '1 second' WHERE worker IS NOT NULL"
        )
        await sweep(self.world.hosts[host])
        await sweep(self.world.hosts[host])
        async with self._beating:  # A process has one heartbeat, and that one connection.
            for each in self.world.hosts:
                await beat(each)

    def _watch(self, stream: TaskStream) -> None:
        self.watching.append(asyncio.create_task(watch(stream)))

    async def finish(self) -> None:
        """Let all runs end, then cancel what waits for somebody, so that every stream ends."""
        for host in self.world.hosts:
            await until(lambda host=host: not host.executions, "the runs to end")
        rows = await self.world.query("SELECT id FROM tasks_app_task WHERE state IN (1, 2, 6, 8)")
        for (task_id,) in rows:
            await soon(cancel_task(self.world.call(self.entry), CancelTaskRequest(id=task_id)))


async def watch(stream: TaskStream) -> list[dict[str, Any]]:
    """Every StreamResponse of a stream, with its seq."""
    story = []
    async for frame in stream:
        if frame.payload is not None:
            story.append({"seq": frame.seq, **json.loads(frame.payload)})
    await stream.aclose()
    return story


async def check_story(world: World, story: list[dict[str, Any]]) -> None:
    """Snapshot and what follows have no gap, and give the artifacts of the task at its last seq."""
    first, *rest = story
    if "message" in first:
        assert rest == []
        return
    task = first["task"]
    if rest and "message" in rest[-1]:
        assert len(rest) == 1
        return
    assert [e["seq"] for e in rest] == list(range(first["seq"] + 1, first["seq"] + 1 + len(rest)))
    artifacts = {a["artifactId"]: a["parts"] for a in task.get("artifacts", [])}
    state = task["status"]["state"]
    for event in rest:
        if "statusUpdate" in event:
            state = event["statusUpdate"]["status"]["state"]
        else:
            update = event["artifactUpdate"]
            name, parts = update["artifact"]["artifactId"], update["artifact"]["parts"]
            artifacts[name] = [*(artifacts[name] if update.get("append") else []), *parts]
    record = await world.load(task["id"])
    past = task_at(record, story[-1]["seq"], await world.hosts[0].store.past(record.id))
    final = json.loads(past.render())
    assert artifacts == {a["artifactId"]: a["parts"] for a in final.get("artifacts", [])}
    assert state == final["status"]["state"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], print_blob=True)
@given(program=programs)
async def test_any_program_keeps_what_must_be_true(world: World, program: list[Any]) -> None:
    if len(world.hosts) < 2:
        await world.start_host()
    await empty_tables(world)
    entry = await world.add_agent(perform, cancel_grace_seconds=5)
    play = Play(world, entry)
    async with asyncio.timeout(60):
        moves_made = []
        for number, move in enumerate(program):
            moves_made.append(asyncio.create_task(play.make(move)))
            if number % 3 == 2:  # sometimes together, sometimes one after the other
                await asyncio.gather(*moves_made)
        await asyncio.gather(*moves_made)
        await play.finish()
        stories = await asyncio.gather(*play.watching)
    await check_everything(world)
    for story in stories:
        await check_story(world, story)
    states = await world.query("SELECT state FROM tasks_app_task")
    ended = {s.number for s in TERMINAL} | {TaskState.UNSPECIFIED.number}
    assert all(state in ended for (state,) in states)
