"""Each prefix of a `messageId` does what the kits' scenario with this name says, over every binding."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.ids import new_id
from tests.conformance.executor import BEHAVIOURS, behaviour_of, complete
from tests.support.callers import Caller
from tests.support.events import Event

FILE = {"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}
LINK = {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}
COMPLETED, INPUT_REQUIRED = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"

SENDS: list[tuple[str, str, str | None, list[dict[str, Any]]]] = [
    ("tck-complete-task", COMPLETED, "Hello from TCK", []),
    ("tck-artifact-text", COMPLETED, None, [{"text": "Generated text content"}]),
    ("tck-artifact-file", COMPLETED, None, [FILE]),
    ("tck-artifact-file-url", COMPLETED, None, [LINK]),
    ("tck-artifact-data", COMPLETED, None, [{"data": {"key": "value", "count": 42}}]),
    ("tck-input-required", INPUT_REQUIRED, None, []),
    ("tck-reject-task", "TASK_STATE_REJECTED", "rejected", []),
    ("tck-anything-else", COMPLETED, "Hello from TCK", []),
]
"""Prefix, state, text of the status message, parts of the only artifact."""

STREAMS: list[tuple[str, list[dict[str, Any]]]] = [
    ("tck-stream-001", [{"text": "Stream hello from TCK"}]),
    ("tck-stream-003", [{"text": "Stream task lifecycle"}]),
    ("tck-stream-ordering-001", [{"text": "Ordered output"}]),
    ("tck-stream-artifact-text", [{"text": "Streamed text content"}]),
    ("tck-stream-artifact-file", [FILE]),
    ("tck-stream-artifact-chunked", [{"text": "chunk-1 "}, {"text": "chunk-2"}]),
]
"""Prefix, parts of the only artifact; WORKING before it and COMPLETED after it."""


def with_prefix(prefix: str) -> str:
    """A messageId that no other test uses."""
    return f"{prefix}-{new_id()}"


@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize(("prefix", "state", "text", "parts"), SENDS)
def test_a_send(
    caller: Caller, binding: str, prefix: str, state: str, text: str | None, parts: list[dict[str, Any]]
) -> None:
    peer = caller.at("tck-full", binding)
    task = peer.say(messageId=with_prefix(prefix))
    assert task["status"]["state"] == state
    assert said(task["status"]) == text
    assert [artifact["parts"] for artifact in task.get("artifacts", [])] == ([parts] if parts else [])
    assert peer.get(task["id"]) == task


@pytest.mark.spec("3.1.1")
def test_a_message_may_be_the_answer(caller: Caller, binding: str) -> None:
    peer = caller.at("tck-full", binding)
    before = caller.stored()[0]
    answer = peer.send({"message": {"messageId": with_prefix("tck-message-response"), **hello()}})
    assert list(answer) == ["message"]
    assert answer["message"]["role"] == "ROLE_AGENT"
    assert answer["message"]["parts"] == [{"text": "Direct message response"}]
    assert "taskId" not in answer["message"]
    assert {row[1] for row in caller.stored()[0] if row not in before} == {0}


@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize(("prefix", "parts"), STREAMS)
def test_a_stream(caller: Caller, binding: str, prefix: str, parts: list[dict[str, Any]]) -> None:
    peer = caller.at("tck-full", binding)
    with peer.say_streaming("hi", messageId=with_prefix(prefix)) as stream:
        events = stream.rest()
    assert [event.kind for event in events if event.kind != "artifactUpdate"] == [
        "task",
        "statusUpdate",
        "statusUpdate",
    ]
    assert [event.state for event in events if event.state][-2:] == ["WORKING", "COMPLETED"]
    assert events[-1].state == "COMPLETED"
    assert artifact_of(events) == parts


@pytest.mark.spec("3.1.2")
def test_a_stream_of_nothing_but_the_end(caller: Caller, binding: str) -> None:
    with caller.at("tck-full", binding).say_streaming("hi", messageId=with_prefix("tck-stream-002")) as stream:
        assert [(event.kind, event.state) for event in stream.rest()][1:] == [("statusUpdate", "COMPLETED")]


@pytest.mark.spec("3.1.6")
def test_a_task_that_lives_long_enough_to_be_subscribed_to(caller: Caller, binding: str) -> None:
    peer = caller.at("tck-full", binding)
    with peer.say_streaming("hi", messageId=with_prefix("test-resubscribe-message-id")) as stream:
        id = stream.until("WORKING")[0].response["task"]["id"]
        with peer.subscribe(id) as second:
            assert second.rest()[-1].state == "COMPLETED"
        assert stream.rest()[-1].state == "COMPLETED"


@pytest.mark.spec("3.4.3")
def test_a_task_that_asked_is_continued_or_cancelled(caller: Caller, binding: str) -> None:
    peer = caller.at("tck-full", binding)
    asked = peer.say(messageId=with_prefix("tck-input-required"))["id"]
    again = peer.say(messageId=with_prefix("tck-input-required"), taskId=asked)
    assert (again["id"], again["status"]["state"]) == (asked, INPUT_REQUIRED)
    done = peer.say(messageId=with_prefix("tck-complete-task"), taskId=asked)
    assert (done["id"], done["status"]["state"]) == (asked, COMPLETED)
    other = peer.say(messageId=with_prefix("tck-input-required"))["id"]
    assert peer.cancel(other)["status"]["state"] == "TASK_STATE_CANCELED"


@pytest.mark.spec("3.3.1")
def test_the_kits_may_use_a_message_id_again(caller: Caller, binding: str) -> None:
    """They do so on purpose, one session-wide id a scenario."""
    peer = caller.at("tck-full", binding)
    id = with_prefix("tck-complete-task")
    first, second = peer.say(messageId=id), peer.say("other words", messageId=id)
    assert first["id"] != second["id"]
    assert second["status"]["state"] == COMPLETED


@pytest.mark.spec("3.3.4")
def test_the_minimal_agent_refuses_what_its_card_does_not_promise(caller: Caller, binding: str) -> None:
    peer = caller.at("tck-minimal", binding)
    assert capabilities(caller, "tck-minimal")["streaming"] is False
    assert capabilities(caller, "tck-minimal")["pushNotifications"] is False
    with caller.refused("UNSUPPORTED_OPERATION"):
        peer.say_streaming("hi", messageId=with_prefix("tck-stream-001"))
    with caller.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        peer.say(configuration={"taskPushNotificationConfig": {"url": "https://hook.test/"}})


@pytest.mark.spec("3.3.4")
def test_the_strict_agent_answers_only_who_supports_its_extension(caller: Caller, binding: str) -> None:
    peer = caller.at("tck-strict", binding)
    (extension,) = capabilities(caller, "tck-strict")["extensions"]
    assert (extension["uri"], extension["required"]) == ("urn:a2a:tck:required-extension", True)
    with caller.refused("EXTENSION_SUPPORT_REQUIRED"):
        peer.say()
    supporting = peer.with_headers(a2a_extensions="urn:a2a:tck:required-extension")
    assert supporting.say()["status"]["state"] == COMPLETED


def test_the_agent_of_the_kit_for_0_3(caller: Caller) -> None:
    message = {
        "kind": "message",
        "messageId": with_prefix("tck"),
        "role": "user",
        "parts": [{"kind": "text", "text": "a"}],
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    answer = caller.client.post(caller.web.agent_url("tck-03"), json=body).json()
    assert (answer["result"]["kind"], answer["result"]["status"]["state"]) == ("task", "completed")


def test_the_longest_prefix_counts() -> None:
    assert behaviour_of("tck-artifact-file-url-1") is BEHAVIOURS["tck-artifact-file-url"]
    assert behaviour_of("tck-artifact-file-1") is BEHAVIOURS["tck-artifact-file"]
    assert behaviour_of("tck-artifact-fil") is complete


def call_v03(caller: Caller, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a JSON-RPC call of 0.3."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    result: dict[str, Any] = caller.client.post(caller.web.agent_url("tck-03"), json=body).json()["result"]
    return result


def hello() -> dict[str, Any]:
    """The rest of a message."""
    return {"role": "ROLE_USER", "parts": [{"text": "hi"}]}


def said(status: dict[str, Any]) -> str | None:
    """The text of a status message."""
    text: str | None = status["message"]["parts"][0]["text"] if "message" in status else None
    return text


def artifact_of(events: list[Event]) -> list[dict[str, Any]]:
    """The parts of the one artifact that a stream brought, put together as §4.2.2 says."""
    updates = [event.response["artifactUpdate"] for event in events if event.kind == "artifactUpdate"]
    assert len({update["artifact"]["artifactId"] for update in updates}) == 1
    assert [update.get("append", False) for update in updates] == [False, *[True] * (len(updates) - 1)]
    return [part for update in updates for part in update["artifact"]["parts"]]


def capabilities(caller: Caller, slug: str) -> dict[str, Any]:
    """What the card says."""
    card = caller.client.get(f"{caller.web.agent_url(slug)}/.well-known/agent-card.json").json()
    found: dict[str, Any] = card["capabilities"]
    return found
