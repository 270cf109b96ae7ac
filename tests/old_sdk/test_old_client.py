"""The last client of 0.3 against a live host, by the card that it finds there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.old_sdk.peer import OldSdk, OldSdkError
from tests.support.deployment import Web, wait_until
from tests.support.old_peers import old_message
from tests.support.receiver import Receiver

HOOK = "https://hooks.example.com/a"
ERRORS = {
    "JSONRPC": ("A2AClientJSONRPCError", "JSON-RPC Error code=-32001"),
    "HTTP+JSON": ("A2AClientHTTPError", "404"),
}


def say(sdk: OldSdk, slug: str, content: Any = "hi", **configuration: Any) -> dict[str, Any]:
    """Send a message without streaming; the task or message."""
    return sdk.call("send", slug, message=old_message(content), configuration=configuration or None)


def start(sdk: OldSdk, slug: str) -> str:
    """The id of a task that is at work."""
    task: str = say(sdk, slug, blocking=False)["id"]
    wait_until(lambda: sdk.call("get", slug, id=task)["status"]["state"] == "working", "the task to be at work")
    return task


@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("prefix", ["", "old-"])
def test_the_card(alice: OldSdk, web: Web, transport: str, prefix: str) -> None:
    """Of an agent that serves both versions, and of one that serves 0.3 alone."""
    card = alice.call("card", f"{prefix}echo")
    assert card["protocolVersion"] == "0.3.0"
    assert (card["url"], card["preferredTransport"]) == (web.agent_url(f"{prefix}echo"), "JSONRPC")
    assert transport in [interface["transport"] for interface in card["additionalInterfaces"]]
    assert card["capabilities"]["streaming"] is True


@pytest.mark.parametrize("prefix", ["", "old-"])
def test_send_and_get(alice: OldSdk, prefix: str) -> None:
    task = say(alice, f"{prefix}echo", "häß")
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "häß"}]
    assert alice.call("get", f"{prefix}echo", id=task["id"]) == task
    assert say(alice, f"{prefix}direct")["kind"] == "message"


def test_stream(alice: OldSdk) -> None:
    events = alice.start("send", "steps", streaming=True, message=old_message("steps 3 10")).rest()
    assert events[0]["kind"] == "task"
    updates = [event for event in events if event["kind"] == "status-update"]
    assert [event["status"]["state"] for event in updates] == ["working", "completed"]
    assert [event["final"] for event in updates] == [False, True]
    chunks = [event for event in events if event["kind"] == "artifact-update"]
    texts = [part["text"] for event in chunks for part in event["artifact"]["parts"]]
    assert texts == ["chunk 1\n", "chunk 2\n", "chunk 3\n"]


def test_a_conversation(alice: OldSdk) -> None:
    task = say(alice, "ask")
    assert task["status"]["state"] == "input-required"
    answer = old_message("the answer", taskId=task["id"], contextId=task["contextId"])
    done = alice.call("send", "ask", message=answer)
    assert (done["id"], done["status"]["state"]) == (task["id"], "completed")
    assert [said["role"] for said in done["history"]] == ["user", "agent", "user"]


def test_resubscribe_and_cancel(alice: OldSdk) -> None:
    task = start(alice, "hold")
    stream = alice.start("resubscribe", "hold", streaming=True, id=task)
    first = stream.next()
    assert first is not None
    assert (first["kind"], first["id"], first["status"]["state"]) == ("task", task, "working")
    assert alice.call("cancel", "hold", id=task)["status"]["state"] == "canceled"
    (last,) = stream.rest()
    assert (last["kind"], last["status"]["state"], last["final"]) == ("status-update", "canceled", True)
    assert alice.call("get", "hold", id=task)["status"]["state"] == "canceled"


def test_parts_come_back_as_they_were(alice: OldSdk) -> None:
    parts = [
        {"kind": "file", "file": {"bytes": "AP8=", "mimeType": "application/x", "name": "a.bin"}},
        {"kind": "file", "file": {"uri": "https://files.test/x"}},
        {"kind": "data", "data": {"a": [1.5, {"b": "c"}]}, "metadata": {"m": "n"}},
    ]
    task = say(alice, "data", parts)
    assert task["history"][0]["parts"] == parts
    assert task["artifacts"][0]["parts"] == parts


def test_push_configs(alice: OldSdk, receiver: Receiver) -> None:
    task = say(alice, "ask")["id"]
    config = {"id": "c", "url": HOOK, "token": "k"}
    made = alice.call("set_config", "ask", taskId=task, pushNotificationConfig=config)
    assert made["taskId"] == task
    # The token is not shown; over HTTP the client reads it as empty, as protobuf has it.
    assert {name: value for name, value in made["pushNotificationConfig"].items() if value} == {"id": "c", "url": HOOK}
    assert alice.call("get_config", "ask", id=task, pushNotificationConfigId="c") == made
    push = {"id": "d", "url": receiver.url("/inline")}
    inline = alice.call("send", "ask", message=old_message(), push=push)["id"]
    found = alice.call("get_config", "ask", id=inline, pushNotificationConfigId="d")
    assert found["pushNotificationConfig"]["url"] == receiver.url("/inline")


def test_errors(alice: OldSdk, transport: str) -> None:
    name, text = ERRORS[transport]
    for op in ("get", "cancel"):
        with pytest.raises(OldSdkError) as error:
            alice.call(op, "echo", id="none")
        assert error.value.name == name
        assert text in error.value.text
