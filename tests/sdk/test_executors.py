"""People's own executors, written for the a2a-sdk and registered by the command, called by the SDK's own client."""

from __future__ import annotations

import pytest
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Role, TaskState

from tests.sdk.caller import SdkCaller, assemble, only, request, say, state, states, texts
from tests.support.deployment import Deployment


@pytest.mark.spec("4.2.2")
async def test_an_artifact_in_chunks(alice: SdkCaller, place: str) -> None:
    slug = f"speller{place}"
    responses = [response async for response in alice.stream(slug, "one two three")]
    assert states(responses)[-2:] == ["WORKING", "COMPLETED"]
    assert assemble(responses) == ["one", "two", "three"]
    chunks = [r.artifact_update for r in responses if r.HasField("artifact_update")]
    assert [(c.append, c.last_chunk) for c in chunks] == [(False, False), (True, False), (True, True)]
    task = await alice.say(slug, "one two three")
    assert (state(task), texts(task)) == ("COMPLETED", [["one", "two", "three"]])
    (artifact,) = task.artifacts
    assert (artifact.artifact_id, artifact.name) == ("words", "Words")
    assert {part.media_type for part in artifact.parts} == {"text/plain"}
    assert [(m.role, m.parts[0].text) for m in task.history] == [
        (Role.ROLE_USER, "one two three"),
        (Role.ROLE_AGENT, "Spelling."),
    ]


@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_message_only(alice: SdkCaller, deployment: Deployment, streaming: bool) -> None:
    client = await alice.at("messenger", streaming=streaming)
    response = await only(client, request("hello"))
    assert response.HasField("message")
    assert response.message.role == Role.ROLE_AGENT
    assert [part.text for part in response.message.parts] == ["You said: hello"]
    assert (await client.list_tasks(ListTasksRequest())).total_size == 0


@pytest.mark.spec("3.1.1")
async def test_a_message_from_a_worker(alice: SdkCaller) -> None:
    """A caller that waits for the end is given the Message; one that does not was given a task, which it completes."""
    response = await only(await alice.at("messenger-worker"), request("hello"))
    assert response.HasField("message")
    assert [part.text for part in response.message.parts] == ["You said: hello"]
    started = await alice.start("messenger-worker", "hello")
    done = await alice.wait_for("messenger-worker", started, TaskState.TASK_STATE_COMPLETED)
    assert done.status.message.parts[0].text == "You said: hello"


@pytest.mark.spec("3.4.3")
async def test_several_turns(alice: SdkCaller, bob: SdkCaller, place: str) -> None:
    """The executor sees the task with all turns, and those related tasks that are the caller's."""
    slug = f"interviewer{place}"
    client = await alice.at(slug)
    task = await alice.say(slug, "one")
    assert (state(task), task.status.message.parts[0].text) == ("INPUT_REQUIRED", "Question 1?")
    task = await say(client, "two", task_id=task.id)
    assert (state(task), task.status.message.parts[0].text) == ("INPUT_REQUIRED", "Question 2?")
    done = await say(client, "three", task_id=task.id)
    assert (state(done), texts(done)) == ("COMPLETED", [["one / two / three"], ["nothing"]])
    said = ["one", "Question 1?", "two", "Question 2?", "three"]
    assert [m.parts[0].text for m in done.history] == said

    others = await bob.say(slug, "bob's")
    again = await alice.say(slug, "a", context_id=done.context_id)
    await say(client, "b", task_id=again.id)
    last = await say(client, "c", task_id=again.id, reference_task_ids=[done.id, others.id, "none"])
    assert texts(last) == [["a / b / c"], ["one / two / three / nothing"]]
    assert last.context_id == done.context_id


@pytest.mark.spec("3.3.2")
async def test_one_that_raises(alice: SdkCaller, place: str) -> None:
    slug = f"broken{place}"
    task = await alice.say(slug)
    assert (state(task), texts(task)) == ("FAILED", [["so far"]])
    assert task.status.message.parts[0].text == "The agent failed to process the message."
    assert "hunter2" not in str(await (await alice.at(slug)).get_task(GetTaskRequest(id=task.id)))
    responses = [response async for response in alice.stream(slug)]
    assert states(responses)[-1] == "FAILED"
    assert "hunter2" not in str(responses)


@pytest.mark.spec("3.1.5")
async def test_one_that_says_goodbye_when_cancelled(alice: SdkCaller, place: str) -> None:
    slug = f"waiter{place}"
    task = await alice.start(slug)
    await alice.wait_for(slug, task, TaskState.TASK_STATE_WORKING)
    cancelled = await (await alice.at(slug)).cancel_task(CancelTaskRequest(id=task.id))
    assert (state(cancelled), cancelled.status.message.parts[0].text) == ("CANCELED", "Stopped.")
