"""Area v0.3: JSON-RPC and both forms of HTTP+JSON, on the tasks that 1.0 sees too (§3.6.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.reading import CHUNKS
from tests.support.callers import Caller
from tests.support.deployment import wait_until
from tests.support.events import EventStream
from tests.support.old_peers import OLD_PEERS, OldJsonRpc, OldPeer, OldProtoRest, OldRest, old_message
from tests.support.peers import envelope
from tests.support.refusals import Refused

FILE = {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "a.txt"}}


@pytest.fixture(params=list(OLD_PEERS))
def form(request: pytest.FixtureRequest) -> Any:
    """Each way to write 0.3 in turn."""
    return OLD_PEERS[request.param]


def bare(stream: EventStream) -> list[dict[str, Any]]:
    """The events that are left."""
    return [event.response["event"] for event in stream.rest()]


def old_at_work(peer: OldPeer) -> str:
    """The id of a new task that is stored as working."""
    task: str = peer.start()["id"]
    wait_until(lambda: peer.get(task)["status"]["state"] == "working", "the task to be at work")
    return task


@pytest.mark.case("K01")
@pytest.mark.case("V05")
@pytest.mark.spec("3.6.2")
def test_a_message_is_answered_with_the_bare_task(alice: Caller, form: Any) -> None:
    task = form(alice, "echo").say("hi")
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert [artifact["parts"] for artifact in task["artifacts"]] == [[{"kind": "text", "text": "hi"}]]
    (said,) = task["history"]
    assert (said["kind"], said["role"], said["parts"]) == ("message", "user", [{"kind": "text", "text": "hi"}])
    assert (said["taskId"], said["contextId"]) == (task["id"], task["contextId"])
    assert "role" not in task
    assert form(alice, "echo").get(task["id"]) == task


@pytest.mark.case("K07")
@pytest.mark.spec("3.6.2")
def test_http_answers_in_the_form_of_the_request(alice: Caller) -> None:
    proto, text = OldProtoRest(alice, "echo"), OldRest(alice, "echo")
    said: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}
    reply = proto.call("POST", "/message:send", {"message": said})
    assert reply["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert reply["task"]["history"][0]["content"] == [{"text": "hi"}]
    assert reply["task"]["artifacts"][0]["parts"] == [{"text": "hi"}]
    assert proto.call("GET", f"/tasks/{reply['task']['id']}") == reply["task"]
    reply = text.call("POST", "/message:send", {"message": old_message()})
    assert reply["task"]["kind"] == "task"
    assert reply["task"]["status"]["state"] == "completed"


@pytest.mark.case("K07")
def test_the_path_of_http_may_be_spelled_as_clients_do(alice: Caller) -> None:
    echo = OldRest(alice, "echo")
    task = echo.say()
    assert echo.call("GET", f"/tasks/{task['id']}", query={"history_length": 1})["id"] == task["id"]
    assert [found["id"] for found in echo.call("GET", "/tasks")] == [task["id"]]
    with alice.refused("METHOD_NOT_ALLOWED"):
        echo.call("GET", "/message:send")
    with alice.refused("NOT_FOUND"):
        echo.call("GET", "/nothing/here")


@pytest.mark.case("K01")
def test_an_answer_without_a_task_is_the_bare_message(alice: Caller, form: Any) -> None:
    said = form(alice, "direct").say("hi")
    assert (said["kind"], said["role"]) == ("message", "agent")
    assert said["parts"][0]["kind"] == "text"
    with form(alice, "direct").stream(old_message("hi")) as stream:
        (event,) = bare(stream)
    assert (event["kind"], event["parts"]) == ("message", said["parts"])


@pytest.mark.case("K03")
def test_the_last_status_of_a_stream_is_final(alice: Caller, form: Any) -> None:
    with form(alice, "steps").stream(old_message("steps 2 10")) as stream:
        events = bare(stream)
    assert events[0]["kind"] == "task"
    updates = [event for event in events if event["kind"] == "status-update"]
    assert [(event["status"]["state"], event["final"]) for event in updates] == [
        ("working", False),
        ("completed", True),
    ]
    assert events[-1] is updates[-1]
    chunks = [event for event in events if event["kind"] == "artifact-update"]
    assert [part["text"] for event in chunks for part in event["artifact"]["parts"]] == CHUNKS[:2]
    assert [event.get("append", False) for event in chunks] == [False] + [True] * (len(chunks) - 1)
    assert chunks[-1]["lastChunk"] is True
    assert len({(event["taskId"], event["contextId"]) for event in chunks + updates}) == 1


@pytest.mark.case("K04")
@pytest.mark.case("K15")
@pytest.mark.parametrize(("slug", "state"), [("ask", "input-required"), ("reject", "rejected")])
def test_streams_end_where_the_task_stops(alice: Caller, form: Any, slug: str, state: str) -> None:
    with form(alice, slug).stream(old_message("hi")) as stream:
        last = bare(stream)[-1]
    assert (last["kind"], last["status"]["state"], last["final"]) == ("status-update", state, True)
    task = form(alice, slug).say("hi")
    assert task["status"]["state"] == state


@pytest.mark.case("K15")
def test_authorization_that_is_required(alice: Caller, form: Any) -> None:
    auth = form(alice, "auth")
    task = auth.say("hi")
    assert task["status"]["state"] == "auth-required"
    with auth.stream(old_message("hi")) as stream:
        while (event := stream.next().response["event"])["kind"] != "status-update" or event["status"][
            "state"
        ] != "auth-required":
            pass
        assert event["final"] is False  # §7.6.1: the stream stays open
    done = auth.say("go on", taskId=task["id"], contextId=task["contextId"])
    assert (done["id"], done["status"]["state"]) == (task["id"], "completed")


@pytest.mark.case("K05")
@pytest.mark.spec("4.1.6")
def test_parts_of_every_kind_in_both_versions(alice: Caller, form: Any) -> None:
    parts = [
        FILE,
        {"kind": "file", "file": {"uri": "https://files.test/x", "mimeType": "image/png"}},
        {"kind": "data", "data": {"n": 1.5, "deep": [{"a": None}]}, "metadata": {"m": 1}},
        {"kind": "text", "text": "häß\u0000", "metadata": {"x": [1]}},
    ]
    task = form(alice, "data").say(parts)
    assert task["history"][0]["parts"] == parts
    assert task["artifacts"][0]["parts"] == parts
    newer = alice.jsonrpc("data").get(task["id"])
    assert newer["history"][0]["parts"] == [
        {"raw": "aGk=", "filename": "a.txt", "mediaType": "text/plain"},
        {"url": "https://files.test/x", "mediaType": "image/png"},
        {"data": {"n": 1.5, "deep": [{"a": None}]}, "metadata": {"m": 1}},
        {"text": "häß\u0000", "metadata": {"x": [1]}},
    ]


def test_data_of_1_0_that_is_no_object(alice: Caller, form: Any) -> None:
    """It goes to 0.3 wrapped, and comes back as it was."""
    task = alice.jsonrpc("data").say([{"data": [1, 2]}])
    (part,) = form(alice, "data").get(task["id"])["history"][0]["parts"]
    assert part == {"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": True}}
    returned = form(alice, "data").say([part])
    assert alice.jsonrpc("data").get(returned["id"])["history"][0]["parts"] == [{"data": [1, 2]}]


@pytest.mark.case("K09")
@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_both_verbs_subscribe(alice: Caller, verb: str) -> None:
    hold = OldProtoRest(alice, "hold")
    task = old_at_work(hold)
    with hold.resubscribe(task, verb) as stream:
        first = stream.next().response["event"]
        assert (first["kind"], first["id"], first["status"]["state"]) == ("task", task, "working")
        assert hold.cancel(task)["status"]["state"] == "canceled"
        (last,) = bare(stream)
    assert (last["status"]["state"], last["final"]) == ("canceled", True)


@pytest.mark.case("K14")
def test_a_resubscription_ends_where_the_task_stops(alice: Caller, form: Any) -> None:
    """0.3 sends a task that has ended, where 1.0 refuses."""
    done = form(alice, "echo").say()
    asked = form(alice, "ask").say()
    for slug, task in (("echo", done), ("ask", asked)):
        with form(alice, slug).resubscribe(task["id"]) as stream:
            assert bare(stream) == [task]
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.jsonrpc("echo").subscribe(done["id"])
    with alice.refused("TASK_NOT_FOUND"):
        form(alice, "echo").resubscribe("none")


@pytest.mark.spec("3.3.2")
@pytest.mark.parametrize(
    ("accept", "content_type"),
    [("text/event-stream", "text/event-stream; charset=utf-8"), ("*/*", "application/json")],
)
def test_who_reads_events_only_is_refused_in_one(alice: Caller, accept: str, content_type: str) -> None:
    """Clients of 0.3 take every answer to a streaming method for a stream."""
    peer = alice.jsonrpc("echo").with_headers(a2a_version=None)
    response = peer.post(envelope("tasks/resubscribe", {"id": "none"}), accept=accept)
    assert (response.status_code, response.headers["content-type"]) == (200, content_type)
    in_event = content_type.startswith("text")
    text = response.text.removeprefix("data: ").removesuffix("\n\n") if in_event else response.text
    assert response.text == (f"data: {text}\n\n" if in_event else text)
    assert json.loads(text)["error"]["code"] == -32001
    other = peer.post(envelope("tasks/get", {"id": "none"}), accept=accept)
    assert other.headers["content-type"] == "application/json"


@pytest.mark.case("K13")
@pytest.mark.spec("3.6.2")
def test_one_task_in_all_tongues(alice: Caller, bob: Caller, form: Any, binding: str) -> None:
    newer, older = alice.at("hold", binding), form(alice, "hold")
    made = newer.start()["id"]
    wait_until(lambda: older.get(made)["status"]["state"] == "working", "the task to be at work")
    with older.resubscribe(made) as stream, newer.subscribe(made) as new_stream:
        stream.next()
        new_stream.next()
        canceled = older.cancel(made)
        (event,) = bare(stream)
        (new_event,) = new_stream.rest()
    assert (canceled["id"], canceled["status"]["state"]) == (made, "canceled")
    assert event["status"]["state"] == "canceled"
    assert new_event.state == "CANCELED"
    seen = newer.get(made)
    assert seen["status"]["state"] == "TASK_STATE_CANCELED"
    assert seen["contextId"] == canceled["contextId"]
    assert [said["messageId"] for said in seen["history"]] == [said["messageId"] for said in canceled["history"]]
    with bob.refused("TASK_NOT_FOUND"):
        form(bob, "hold").get(made)


@pytest.mark.case("K13")
def test_a_conversation_in_both_versions(alice: Caller, form: Any) -> None:
    task = alice.jsonrpc("ask").say("hi")
    done = form(alice, "ask").say("the answer", taskId=task["id"], contextId=task["contextId"])
    assert (done["id"], done["status"]["state"]) == (task["id"], "completed")
    assert [said["role"] for said in done["history"]] == ["user", "agent", "user"]


def test_a_message_is_the_same_in_both_versions(alice: Caller, form: Any) -> None:
    """Idempotency does not depend on the version."""
    said = old_message("hi")
    task = form(alice, "echo").send(said)
    newer = {"messageId": said["messageId"], "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    assert alice.jsonrpc("echo").send({"message": newer})["task"]["id"] == task["id"]
    with alice.refused("INVALID_PARAMS", "message.messageId"):
        form(alice, "echo").send(said | {"parts": [{"kind": "text", "text": "other"}]})


@pytest.mark.parametrize(("length", "kept"), [(0, 3), (1, 1), (2, 2)])
def test_history_length_counts_from_one(alice: Caller, form: Any, length: int, kept: int) -> None:
    """In 0.3, 0 is no limit."""
    ask = form(alice, "ask")
    task = ask.say("hi")
    done = ask.say("go on", taskId=task["id"])
    assert len(done["history"]) == 3
    assert len(ask.get(task["id"], historyLength=length)["history"]) == kept


def test_blocking(alice: Caller) -> None:
    hold, rest = OldJsonRpc(alice, "hold"), OldProtoRest(alice, "hold")
    for task in (hold.start(), rest.start(), rest.say("hold", {"acceptedOutputModes": ["text/plain"]})):
        assert task["status"]["state"] in ("submitted", "working")
        assert hold.cancel(task["id"])["status"]["state"] == "canceled"
    echo = OldJsonRpc(alice, "echo")
    for configuration in (None, {}, {"blocking": True}):
        assert echo.say("hi", configuration)["status"]["state"] == "completed"
    assert OldProtoRest(alice, "echo").say("hi", {"blocking": True})["status"]["state"] == "completed"


@pytest.mark.case("K14")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("agent/getAuthenticatedExtendedCard", None),
        ("tasks/pushNotificationConfig/set", {"taskId": "none", "pushNotificationConfig": {"url": "https://h.test"}}),
        ("tasks/pushNotificationConfig/get", {"id": "none"}),
        ("tasks/pushNotificationConfig/list", {"id": "none"}),
        ("tasks/pushNotificationConfig/delete", {"id": "none", "pushNotificationConfigId": "c"}),
        ("tasks/resubscribe", {"id": "none"}),
        ("tasks/cancel", {"id": "none"}),
        ("tasks/get", {"id": "none"}),
    ],
)
def test_every_method_reaches_its_operation(alice: Caller, method: str, params: Any) -> None:
    with alice.nothing_stored(), pytest.raises(Refused) as refusal:
        OldJsonRpc(alice, "echo").call(method, params)
    expected = "EXTENDED_AGENT_CARD_NOT_CONFIGURED" if params is None else "TASK_NOT_FOUND"
    assert refusal.value.reason in (expected, "PUSH_NOTIFICATION_NOT_SUPPORTED")


def test_an_agent_without_the_extended_card_says_so_in_one_way(alice: Caller) -> None:
    """0.3 §8.2, -32007."""
    with alice.refused("EXTENDED_AGENT_CARD_NOT_CONFIGURED"):
        OldJsonRpc(alice, "echo").call("agent/getAuthenticatedExtendedCard")
    response = OldRest(alice, "echo").rest.ask("GET", "/v1/card")
    assert response.status_code == 400
    assert response.json()["error"] == "AuthenticatedExtendedCardNotConfiguredError"
    assert response.json()["code"] == -32007


@pytest.mark.parametrize(
    ("params", "fields"),
    [
        ({"message": {}}, ["message.messageId", "message.role", "message.parts"]),
        ({"message": old_message([])}, ["message.parts"]),
        ({"message": old_message([{"kind": "text"}])}, ["message.parts[0]", "message.parts[0].text"]),
        ({"message": old_message([{"kind": "data", "data": 1}])}, ["message.parts[0].data"]),
        ({"message": old_message(role="agent")}, ["message.role"]),
        ({"message": old_message(), "configuration": {"historyLength": -1}}, ["configuration.historyLength"]),
        ({"message": old_message(), "metadata": [1]}, ["metadata"]),
    ],
)
def test_refusals_name_the_fields(alice: Caller, params: Any, fields: list[str]) -> None:
    with alice.refused("INVALID_PARAMS", *fields):
        OldJsonRpc(alice, "echo").call("message/send", params)
    if "parts" in params["message"]:
        with alice.refused("INVALID_PARAMS", *fields):
            OldRest(alice, "echo").call("POST", "/message:send", params)


def test_errors_over_http_have_the_names_that_clients_look_for(alice: Caller, anonymous: Caller) -> None:
    response = OldRest(alice, "echo").rest.ask("GET", "/v1/tasks/none")
    assert response.status_code == 404
    reply = response.json()
    assert (reply["error"], reply["type"], reply["code"]) == ("TaskNotFoundError", "TaskNotFoundError", -32001)
    assert reply["data"][0]["reason"] == "TASK_NOT_FOUND"
    for slug, path, status, name in [
        ("nobody", "/v1/tasks/x", 404, "AgentNotFoundError"),
        ("order-agent", "/v1/tasks/x", 401, "UnauthenticatedError"),
        ("echo", "/v1/nothing", 404, "RouteNotFoundError"),
    ]:
        response = OldRest(anonymous, slug).rest.ask("GET", path)
        assert (response.status_code, response.json()["error"]) == (status, name)
        assert response.headers["content-type"] == "application/json"
    large = old_message("x" * 4096)
    with alice.refused("REQUEST_TOO_LARGE"):
        OldRest(alice, "small").call("POST", "/message:send", {"message": large})
