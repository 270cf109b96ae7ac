"""Every operation of the official client, against the simulators in the web process and in the worker."""

from __future__ import annotations

import pytest
from a2a.client import create_client
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)

from tests.sdk.caller import SdkCaller, assemble, only, request, say, state, states, texts
from tests.support.deployment import Deployment, Web

CHUNKS = [f"chunk {number}\n" for number in range(1, 21)]


@pytest.mark.spec("8.2")
async def test_a_card_leads_to_both_bindings(alice: SdkCaller) -> None:
    card = await A2ACardResolver(alice.http, alice.web.agent_url("echo")).get_agent_card()
    assert card.name == "Echo"
    over_http = [i for i in card.supported_interfaces if i.protocol_binding in ("JSONRPC", "HTTP+JSON")]
    assert [(i.url, i.protocol_binding, i.protocol_version) for i in over_http] == [
        (alice.web.agent_url("echo"), "JSONRPC", "1.0"),
        (alice.web.agent_url("echo"), "HTTP+JSON", "1.0"),
        (alice.web.agent_url("echo"), "JSONRPC", "0.3"),
        (alice.web.agent_url("echo"), "HTTP+JSON", "0.3"),
    ]
    assert card.capabilities.streaming


@pytest.mark.spec("8.2")
async def test_the_client_as_it_comes(web: Web) -> None:
    """Nothing but the URL: no key, no configuration."""
    async with await create_client(web.agent_url("echo")) as client:
        responses = [response async for response in client.send_message(request("hello"))]
    assert states(responses)[-1] == "COMPLETED"
    assert assemble(responses) == ["hello"]


@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize("text", ["hello", "  two\nlines ", "你好 👋", "\u2028\\u0000"])
async def test_a_send_waits_for_the_end(alice: SdkCaller, text: str) -> None:
    sent = request(text)
    task = (await only(await alice.at("echo"), sent)).task
    assert state(task) == "COMPLETED"
    assert texts(task) == [[text]]
    (said,) = task.history
    assert (said.message_id, said.task_id, said.context_id) == (sent.message.message_id, task.id, task.context_id)
    assert await (await alice.at("echo")).get_task(GetTaskRequest(id=task.id)) == task


@pytest.mark.spec("3.1.1")
async def test_a_send_waits_for_a_worker(alice: SdkCaller, place: str) -> None:
    task = await alice.say(f"steps{place}", "steps 3 5")
    assert (state(task), texts(task)) == ("COMPLETED", [CHUNKS[:3]])


@pytest.mark.spec("3.2.2")
async def test_a_send_that_does_not_wait(alice: SdkCaller, place: str) -> None:
    task = await alice.start(f"hold{place}", "hold")
    assert state(task) in ("SUBMITTED", "WORKING")
    working = await alice.wait_for(f"hold{place}", task, TaskState.TASK_STATE_WORKING)
    assert (working.id, working.context_id) == (task.id, task.context_id)


@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_message_for_an_answer(alice: SdkCaller, streaming: bool) -> None:
    response = await only(await alice.at("direct", streaming=streaming), request("hello"))
    assert response.HasField("message")
    assert [part.text for part in response.message.parts] == ["hello"]
    assert response.message.task_id == ""
    assert list((await (await alice.at("direct")).list_tasks(ListTasksRequest())).tasks) == []


@pytest.mark.spec("3.1.2")
async def test_a_stream(alice: SdkCaller, place: str) -> None:
    responses = [response async for response in alice.stream(f"steps{place}", "steps 20 5")]
    first, *updates = responses
    assert first.HasField("task")
    assert states(responses) in (["SUBMITTED", "WORKING", "COMPLETED"], ["WORKING", "COMPLETED"])
    chunks = [r.artifact_update for r in updates if r.HasField("artifact_update")]
    assert [chunk.artifact.parts[0].text for chunk in chunks] == CHUNKS
    assert [chunk.append for chunk in chunks] == [False] + [True] * 19
    assert [chunk.last_chunk for chunk in chunks] == [False] * 19 + [True]
    stored = await (await alice.at(f"steps{place}")).get_task(GetTaskRequest(id=first.task.id))
    assert (state(stored), texts(stored)) == ("COMPLETED", [CHUNKS])


@pytest.mark.spec("3.1.2")
@pytest.mark.parametrize(
    ("slug", "outcome"), [("ask", "INPUT_REQUIRED"), ("boom", "FAILED"), ("reject", "REJECTED"), ("echo", "COMPLETED")]
)
async def test_a_stream_ends_where_its_task_stops(alice: SdkCaller, slug: str, outcome: str) -> None:
    responses = [response async for response in alice.stream(slug)]
    assert states(responses)[-1] == outcome
    assert state(await (await alice.at(slug)).get_task(GetTaskRequest(id=responses[0].task.id))) == outcome


@pytest.mark.spec("3.4.3")
@pytest.mark.parametrize("streaming", [False, True])
async def test_an_answer_to_a_question(alice: SdkCaller, streaming: bool) -> None:
    task = await alice.say("ask", "a table")
    assert state(task) == "INPUT_REQUIRED"
    assert task.status.message.parts[0].text == "What should I know before I go on?"
    client = await alice.at("ask", streaming=streaming)
    responses = [r async for r in client.send_message(request("for two", task_id=task.id, context_id=task.context_id))]
    assert states(responses)[-1] == "COMPLETED"
    assert assemble(responses) == ["for two"]
    done = await client.get_task(GetTaskRequest(id=task.id))
    assert [m.parts[0].text for m in done.history] == ["a table", "What should I know before I go on?", "for two"]
    assert done.context_id == task.context_id


@pytest.mark.spec("3.1.3")
@pytest.mark.parametrize("length", [0, 1, 2, 9])
async def test_a_get_with_less_history(alice: SdkCaller, length: int) -> None:
    client = await alice.at("ask")
    task = await alice.say("ask", "a table")
    whole = await say(client, "for two", task_id=task.id)
    part = await client.get_task(GetTaskRequest(id=task.id, history_length=length))
    assert list(part.history) == (list(whole.history)[-length:] if length else [])


@pytest.mark.spec("3.1.4")
async def test_a_list_page_by_page(alice: SdkCaller, bob: SdkCaller) -> None:
    client = await alice.at("echo")
    sent = [(await alice.say("echo", f"number {number}")).id for number in range(7)]
    await bob.say("echo", "somebody else's")
    found: list[Task] = []
    token = ""
    sizes: list[int] = []
    while token or not sizes:
        page = await client.list_tasks(ListTasksRequest(page_size=3, page_token=token, include_artifacts=True))
        assert (page.total_size, page.page_size) == (7, 3)
        sizes.append(len(page.tasks))
        found += page.tasks
        token = page.next_page_token
    assert sizes == [3, 3, 1]
    assert [task.id for task in found] == sent[::-1]
    assert [texts(task) for task in found] == [[[f"number {number}"]] for number in range(6, -1, -1)]


@pytest.mark.spec("3.1.4")
async def test_a_list_of_some(alice: SdkCaller) -> None:
    client = await alice.at("ask")
    first, second = await alice.say("ask"), await alice.say("ask")
    await say(client, "an answer", task_id=first.id)

    async def ids(**members: object) -> list[str]:
        return [task.id for task in (await client.list_tasks(ListTasksRequest(**members))).tasks]  # type: ignore[arg-type]

    assert await ids() == [first.id, second.id]
    assert await ids(context_id=second.context_id) == [second.id]
    assert await ids(status=TaskState.TASK_STATE_COMPLETED) == [first.id]
    assert await ids(status=TaskState.TASK_STATE_FAILED) == []
    (completed,) = (await client.list_tasks(ListTasksRequest(context_id=first.context_id, history_length=1))).tasks
    assert ([m.parts[0].text for m in completed.history], len(completed.artifacts)) == (["an answer"], 0)
    after = completed.status.timestamp
    assert await ids(status_timestamp_after=after) == [first.id]


@pytest.mark.spec("3.1.5")
async def test_a_cancel(alice: SdkCaller, place: str) -> None:
    client = await alice.at(f"hold{place}")
    task = await alice.start(f"hold{place}", "hold")
    cancelled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert (cancelled.id, state(cancelled)) == (task.id, "CANCELED")
    assert await client.get_task(GetTaskRequest(id=task.id)) == cancelled


@pytest.mark.spec("3.1.6")
async def test_two_subscriptions_see_the_rest(alice: SdkCaller, place: str) -> None:
    slug = f"steps{place}"
    client = await alice.at(slug, streaming=True)
    task = await alice.start(slug, "steps 20 20")
    first = [response async for response in client.subscribe(SubscribeToTaskRequest(id=task.id))]
    assert first[0].HasField("task")
    assert states(first)[-1] == "COMPLETED"
    assert assemble(first) == CHUNKS

    held = await alice.start(f"hold{place}", "hold")
    holding = await alice.at(f"hold{place}", streaming=True)
    streams = [holding.subscribe(SubscribeToTaskRequest(id=held.id)) for _ in range(2)]
    snapshots = [await anext(stream) for stream in streams]
    assert [snapshot.task.id for snapshot in snapshots] == [held.id] * 2
    await holding.cancel_task(CancelTaskRequest(id=held.id))
    for stream in streams:
        assert states([response async for response in stream])[-1] == "CANCELED"


@pytest.mark.spec("3.3.1")
async def test_the_same_message_twice_is_one_task(alice: SdkCaller, deployment: Deployment) -> None:
    client = await alice.at("echo")
    sent = request("once")
    first, second = [(await only(client, sent)).task for _ in range(2)]
    assert first == second
    assert deployment.query("SELECT count(*) FROM tasks_app_task WHERE owner = %s", [alice.owner]) == [(1,)]
