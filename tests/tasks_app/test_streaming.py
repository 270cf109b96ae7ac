"""SendStreamingMessage and SubscribeToTask (§3.1.2, §3.1.6): a snapshot, then every event once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from a2a_host.bindings.sse import DialectFrames, EventStream
from agents.runtimes.base import Run, Updates
from protocol.dialects.v1 import V1_0
from protocol.errors import TaskNotFoundError, UnsupportedOperationError
from protocol.model import StreamResponse
from protocol.requests import SubscribeToTaskRequest
from protocol.states import TaskState
from tasks_app.execution.claiming import claim_task
from tasks_app.operations import send_message, stream_message, subscribe_to_task
from tasks_app.operations.streaming import TaskStream
from tests.tasks_app.checks import check_everything
from tests.tasks_app.world import PATIENCE, World, chunk, complete, request, say, soon, until

Story = list[tuple[int, str]]


class Counting:
    """An agent that makes a chunk whenever it is told to, and ends after the last."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks
        self.places = asyncio.Semaphore(0)

    async def __call__(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        for n in range(self.chunks):
            await self.places.acquire()
            await updates.artifact(chunk(f"{n},", "x"), append=n > 0, last_chunk=n == self.chunks - 1)
        await self.places.acquire()
        await updates.status(TaskState.COMPLETED)

    def go_on(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.places.release()

    def finish(self) -> None:
        self.go_on(self.chunks + 1)


async def frames(stream: TaskStream, number: int = -1) -> list[tuple[int, Any]]:
    """(seq, StreamResponse) of the next frames, all until the end unless `number` says how many."""
    found: list[tuple[int, Any]] = []
    while len(found) != number:
        try:
            frame = await soon(anext(stream))
        except StopAsyncIteration:
            assert number == -1, f"the stream ended after {found}"
            break
        if frame.payload is not None:
            found.append((frame.seq, json.loads(frame.payload)))
    return found


def short(story: list[tuple[int, Any]]) -> Story:
    """Each frame as (seq, what it says in a word)."""
    words = []
    for seq, response in story:
        ((kind, body),) = response.items()
        if kind == "artifactUpdate":
            word = body["artifact"]["parts"][0]["text"]
        elif kind == "message":
            word = "message"
        else:
            word = body["status"]["state"].removeprefix("TASK_STATE_")
            word = word if kind == "statusUpdate" else f"task {word}"
        words.append((seq, word))
    return words


async def test_a_stream_tells_the_whole_story(world: World) -> None:
    agent = Counting(3)
    agent.finish()
    entry = await world.add_agent(agent)
    stream = await soon(stream_message(world.call(entry), request()))
    story = await frames(stream)
    assert short(story) == [
        (0, "task SUBMITTED"), (1, "WORKING"), (2, "0,"), (3, "1,"), (4, "2,"), (5, "COMPLETED"),
    ]  # fmt: skip
    last = story[4][1]["artifactUpdate"]
    assert (last["append"], last["lastChunk"]) == (True, True)
    await stream.aclose()


async def test_a_message_is_the_only_frame(world: World) -> None:
    entry = await world.add_agent(executor="direct")
    stream = await soon(stream_message(world.call(entry), request("hi")))
    ((_, response),) = await frames(stream)
    assert response["message"]["parts"] == [{"text": "hi"}]
    await stream.aclose()


@pytest.mark.parametrize(
    ("state", "ends"), [(TaskState.INPUT_REQUIRED, True), (TaskState.AUTH_REQUIRED, False)], ids=lambda v: str(v)
)
async def test_a_stream_at_an_interruption(world: World, state: TaskState, ends: bool, settings: Any) -> None:
    settings.KEEP_ALIVE_SECONDS = 0.02

    async def act(run: Run, updates: Updates) -> None:
        if run.task is None:
            await updates.status(state, say("well?"))
        else:
            await updates.status(TaskState.COMPLETED)

    entry = await world.add_agent(act)
    call = world.call(entry)
    stream = await soon(stream_message(call, request()))
    assert short(await frames(stream, 2)) == [(0, "task SUBMITTED"), (1, state.name)]
    if ends:
        assert await frames(stream) == []
        return
    assert (await soon(anext(stream))).payload is None, "it is kept open"
    ((task_id,),) = await world.query("SELECT id FROM tasks_app_task")
    await soon(send_message(call, request(task_id=task_id)))
    assert short(await frames(stream)) == [(2, "WORKING"), (3, "COMPLETED")]
    await stream.aclose()


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
async def test_a_subscription_stays_until_the_end(world: World, state: TaskState) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(state if run.task is None else TaskState.COMPLETED)

    entry = await world.add_agent(act)
    call = world.call(entry)
    first = await soon(send_message(call, request()))
    stream = await soon(subscribe_to_task(call, SubscribeToTaskRequest(id=first.record.id)))
    assert short(await frames(stream, 1)) == [(1, f"task {state.name}")]
    await soon(send_message(call, request(task_id=first.record.id)))
    assert short(await frames(stream)) == [(2, "WORKING"), (3, "COMPLETED")]
    await stream.aclose()


async def test_subscribing_at_every_moment(world: World) -> None:
    """Snapshot and what follows give the final artifact, wherever one begins."""
    agent = Counting(6)
    entry = await world.add_agent(agent)
    call = world.call(entry)
    first = await soon(send_message(call, request(immediately=True)))
    streams = []
    for n in range(6):
        agent.go_on()
        streams.append(await soon(subscribe_to_task(call, SubscribeToTaskRequest(id=first.record.id))))
        if n % 2:
            await frames(streams[-1], 1)  # some begin to read at once
    agent.go_on()
    stories = await soon(asyncio.gather(*(frames(s) for s in streams)))
    final = json.loads((await world.load(first.record.id)).render())
    for n, story in enumerate(stories):
        if n % 2:
            continue
        assert put_together(story) == final["artifacts"][0]["parts"]
        assert [seq for seq, _ in story[1:]] == list(range(story[0][0] + 1, 9))
    for stream in streams:
        await stream.aclose()


def put_together(story: list[tuple[int, Any]]) -> list[Any]:
    """The parts of the one artifact, as a client builds them up."""
    task = story[0][1]["task"]
    parts = list(task["artifacts"][0]["parts"]) if "artifacts" in task else []
    for _, response in story[1:]:
        if "artifactUpdate" in response:
            update = response["artifactUpdate"]
            parts = [*(parts if update.get("append") else []), *update["artifact"]["parts"]]
    return parts


async def test_resuming_after_every_event(world: World) -> None:
    """`Last-Event-ID` n: the task as it was then, and everything since."""
    agent = Counting(4)
    agent.go_on(3)
    entry = await world.add_agent(agent)
    first = await soon(send_message(world.call(entry), request(immediately=True)))
    async with asyncio.timeout(10):
        while (await world.load(first.record.id)).last_seq < 4:
            pass
    streams = []
    for seq in (*range(5), 99, -1):
        call = world.call(entry, resume_after=seq)
        streams.append(await soon(subscribe_to_task(call, SubscribeToTaskRequest(id=first.record.id))))
    agent.finish()
    stories = await soon(asyncio.gather(*(frames(s) for s in streams)))
    whole = [(1, "WORKING"), (2, "0,"), (3, "1,"), (4, "2,"), (5, "3,"), (6, "COMPLETED")]
    final = json.loads((await world.load(first.record.id)).render())["artifacts"][0]["parts"]
    for seq, story in zip((*range(5), 4, 4), stories, strict=True):
        state = "SUBMITTED" if seq == 0 else "WORKING"
        assert short(story) == [(seq, f"task {state}"), *whole[seq:]]
        assert put_together(story) == final
    for stream in streams:
        await stream.aclose()


async def test_a_task_that_has_ended_resumes_after_every_event(world: World) -> None:
    """By a repeated message, and by a subscription of who has missed something."""
    agent = Counting(2)
    agent.finish()
    entry = await world.add_agent(agent)
    whole = await frames(await soon(stream_message(world.call(entry), request("hi", message_id="m-1"))))
    assert [seq for seq, _ in whole] == [0, 1, 2, 3, 4]
    for seq in range(5):
        call = world.call(entry, resume_after=seq)
        stream = await soon(stream_message(call, request("hi", message_id="m-1")))
        story = await frames(stream)
        assert story[0][0] == seq
        assert story[1:] == whole[seq + 1 :]
        assert put_together(story) == put_together(whole)
        await stream.aclose()
    ended = SubscribeToTaskRequest(id=whole[0][1]["task"]["id"])
    for seq in range(4):
        stream = await soon(subscribe_to_task(world.call(entry, resume_after=seq), ended))
        story = await frames(stream)
        assert (story[0][0], story[1:]) == (seq, whole[seq + 1 :])
        await stream.aclose()
    for nothing in (None, 4, 5, -1):
        with pytest.raises(UnsupportedOperationError):
            await soon(subscribe_to_task(world.call(entry, resume_after=nothing), ended))
    new = await soon(stream_message(world.call(entry, resume_after=2), request("new")))
    assert [seq for seq, _ in await frames(new, 1)] == [0], "a new task has no past"


async def test_a_turn_that_is_resumed_before_its_first_event(world: World) -> None:
    """The task waited for its caller then, which is no end of this stream."""

    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.INPUT_REQUIRED if run.task is None else TaskState.COMPLETED)

    entry = await world.add_agent(act)
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    turn = lambda: request("go on", message_id="m-2", task_id=task_id)  # noqa: E731
    await soon(send_message(world.call(entry), turn()))
    stream = await soon(stream_message(world.call(entry, resume_after=1), turn()))
    assert short(await frames(stream)) == [(1, "task INPUT_REQUIRED"), (2, "WORKING"), (3, "COMPLETED")]


async def test_an_answer_without_a_task_has_no_past(world: World) -> None:
    entry = await world.add_agent(executor="direct")
    first = await frames(await soon(stream_message(world.call(entry), request("hi", message_id="m-1"))))
    again = await soon(stream_message(world.call(entry, resume_after=0), request("hi", message_id="m-1")))
    assert await frames(again) == first


async def test_the_stream_of_a_deleted_task_ends(world: World, settings: Any) -> None:
    settings.KEEP_ALIVE_SECONDS = 0.02
    agent = Counting(2)
    entry = await world.add_agent(agent)
    stream = await soon(stream_message(world.call(entry), request()))
    await frames(stream, 2)
    await world.query("DELETE FROM tasks_app_task")
    await soon(world.hosts[0].hub._end_deleted())
    assert await frames(stream) == []
    assert not stream.interrupted


async def test_an_ended_task_cannot_be_subscribed_to(world: World) -> None:
    entry = await world.add_agent(complete)
    call = world.call(entry)
    first = await soon(send_message(call, request()))
    with pytest.raises(UnsupportedOperationError):
        await soon(subscribe_to_task(call, SubscribeToTaskRequest(id=first.record.id)))
    for other, task_id in ((world.call(entry, "bob"), first.record.id), (call, "absent")):
        with pytest.raises(TaskNotFoundError):
            await soon(subscribe_to_task(other, SubscribeToTaskRequest(id=task_id)))
    assert world.hosts[0].hub._topics == {}, "who was refused follows nothing"


async def test_an_agent_that_does_not_stream(world: World) -> None:
    entry = await world.add_agent(complete, streaming=False)
    with pytest.raises(UnsupportedOperationError):
        await soon(stream_message(world.call(entry), request()))
    assert await world.query("SELECT count(*) FROM tasks_app_task") == [(0,)]


async def test_a_stream_that_is_left_is_forgotten_and_the_run_goes_on(world: World) -> None:
    agent = Counting(2)
    entry = await world.add_agent(agent)
    stream = await soon(stream_message(world.call(entry), request()))
    await frames(stream, 2)
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await stream.aclose()
    assert world.hosts[0].hub._topics == {}
    agent.finish()
    await until(lambda: not world.hosts[0].executions, "the run to end")
    assert (await world.only_task()).state is TaskState.COMPLETED


async def test_many_streams_of_one_task(world: World) -> None:
    other = await world.start_host()
    agent = Counting(20)
    entry = await world.add_agent(agent)
    first = await soon(send_message(world.call(entry), request(immediately=True)))
    calls = [world.call(entry, host=h) for h in (world.hosts[0], other)]
    streams = [
        await soon(subscribe_to_task(calls[n % 2], SubscribeToTaskRequest(id=first.record.id))) for n in range(60)
    ]
    agent.finish()
    for story in await soon(asyncio.gather(*(frames(s) for s in streams))):
        start = story[0][0]
        assert [seq for seq, _ in story] == list(range(start, 23))
    for stream in streams:
        await stream.aclose()
    await check_everything(world)


async def test_a_stream_of_an_agent_in_a_worker(world: World) -> None:
    worker = await world.start_host("worker")
    entry = await world.add_agent(executor="steps", execution="worker")
    stream = await soon(stream_message(world.call(entry), request("steps 3 1")))
    ((_, response),) = await frames(stream, 1)
    assert response["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    await soon(claim_task(worker, response["task"]["id"], 1))
    assert short(await frames(stream)) == [
        (1, "WORKING"), (2, "chunk 1\n"), (3, "chunk 2\n"), (4, "chunk 3\n"), (5, "COMPLETED"),
    ]  # fmt: skip
    await stream.aclose()


async def test_a_repeated_message_gets_the_stream_of_its_task(world: World) -> None:
    agent = Counting(2)
    entry = await world.add_agent(agent)
    call = world.call(entry)
    first = await soon(stream_message(call, request("hi", message_id="m-1")))
    await frames(first, 2)
    second = await soon(stream_message(call, request("hi", message_id="m-1")))
    agent.finish()
    assert short(await frames(first)) == [(2, "0,"), (3, "1,"), (4, "COMPLETED")]
    story = short(await frames(second))
    assert story[0] == (1, "task WORKING")
    assert story[-3:] == [(2, "0,"), (3, "1,"), (4, "COMPLETED")]
    after = await soon(stream_message(call, request("hi", message_id="m-1")))
    assert short(await frames(after)) == [(4, "task COMPLETED")]
    for stream in (first, second, after):
        await stream.aclose()
    assert await world.query("SELECT count(*) FROM tasks_app_task") == [(1,)]


async def test_who_comes_back_to_a_long_log_is_sent_many_events_at_once(world: World) -> None:
    """Whole SSE events, as the log has them; the artifacts of the first are as they were at the event that is named."""
    agent = Counting(2000)
    entry = await world.add_agent(agent)
    call = world.call(entry)
    first = await stream_message(call, request("go"))
    (_, response), *_ = await frames(first, 1)
    task_id = response["task"]["id"]
    await first.aclose()
    agent.finish()
    async with asyncio.timeout(PATIENCE):
        while (await world.load(task_id)).state is not TaskState.COMPLETED:
            pass

    call.resume_after = 3
    stream = await subscribe_to_task(call, SubscribeToTaskRequest(id=task_id))
    bodies: list[bytes] = []

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    await soon(EventStream(DialectFrames(stream, V1_0, StreamResponse))({}, asyncio.Event().wait, send))
    events = b"".join(bodies).split(b"\n\n")
    assert events.pop() == b""
    assert [int(event.split(b"\n")[0].removeprefix(b"id: ")) for event in events] == list(range(3, 2003))
    task = json.loads(events[0].partition(b"data: ")[2])["task"]
    assert [part["text"] for part in task["artifacts"][0]["parts"]] == ["0,", "1,"]
    assert len(bodies) < 30
    assert max(map(len, bodies)) < 70_000
