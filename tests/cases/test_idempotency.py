"""Area idempotency: a message sent again is the same message (§3.3.1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from tests.cases.racing import at_once
from tests.cases.reading import CHUNKS, assemble, state, states, terminal_events, texts
from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.events import Event
from tests.support.peers import JsonRpcPeer, Peer, message
from tests.support.refusals import Refused
from tests.websocket.line import open_line


def params(content: str = "hi", configuration: Any = None, **members: Any) -> dict[str, Any]:
    given = {"message": message(content, **members)}
    return given if configuration is None else given | {"configuration": configuration}


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
@pytest.mark.parametrize("slug", ["echo", "worker-echo", "ask", "boom"])
@pytest.mark.parametrize("configuration", [None, {"returnImmediately": True}])
def test_the_same_bytes_again_are_the_same_task(
    alice: Caller, binding: str, slug: str, configuration: Any, worker: object
) -> None:
    peer = alice.at(slug, binding)
    text = json.dumps(params(configuration=configuration))
    first = peer.send(text)["task"]
    wait_until(lambda: state(peer.get(first["id"])) not in ("SUBMITTED", "WORKING"), "the end of the run")
    done = peer.get(first["id"])
    with alice.nothing_stored():
        for _ in range(2):
            assert peer.send(text)["task"] == done
    assert peer.list()["totalSize"] == 1


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
def test_a_retry_while_the_task_runs_waits_for_the_same_end(alice: Caller, binding: str) -> None:
    steps = alice.at("steps", binding)
    given = params("steps 3 30")
    outcomes = at_once([lambda: steps.send(given)["task"]] * 3)
    assert [texts(task["artifacts"]) for task in outcomes] == [  # type: ignore[index]
        [["chunk 1\n", "chunk 2\n", "chunk 3\n"]]
    ] * 3
    assert steps.list()["totalSize"] == 1


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_a_stream_that_is_asked_for_again_joins_the_same_task(
    alice: Caller, second_web: Web, json_binding: str, slug: str, worker: object
) -> None:
    given = params("steps 8 40")
    with alice.at(slug, json_binding).stream(given) as first:
        begun = first.next()
        with alice.before(second_web).at(slug, json_binding).stream(given) as second:
            again = second.rest()
        events = [begun, *first.rest()]
    assert again[0].response["task"]["id"] == begun.response["task"]["id"]
    assert assemble(events) == assemble(again) == CHUNKS[:8]
    assert again[-1] == events[-1]
    assert alice.at(slug, json_binding).list()["totalSize"] == 1


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
def test_the_same_in_another_spelling_binding_or_operation(alice: Caller) -> None:
    given = '{"message":{"messageId":"m","contextId":"c","role":"ROLE_USER","parts":[{"data":{"b":1.0,"a":[1]}}]}}'
    spelled = (
        '{ "colour": 1, "message": {"parts": [\r\n {"data": {"a": [ 1 ], "b": 1e0}, "filename": ""} ],'
        ' "role": 1, "context_id": "c", "message_id": "m", "metadata": null}}'
    )
    rpc, rest = alice.jsonrpc("data"), alice.rest("data")
    task = rpc.send(given)["task"]
    with alice.nothing_stored():
        assert rest.send(given)["task"] == rest.send(spelled)["task"] == rpc.send(spelled)["task"] == task
        for peer in (rpc, rest):
            with peer.stream(given) as stream:
                assert [event.response for event in stream.rest()] == [{"task": task}]


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
@pytest.mark.parametrize(
    "other",
    [
        {"content": "other"},
        {"contextId": "other"},
        {"metadata": {"a": 1}},
        {"extensions": ["u"]},
        {"referenceTaskIds": ["t"]},
        {"content": ""},
        {"content": "hi "},
    ],
)
def test_another_message_with_the_same_id_is_refused(alice: Caller, binding: str, other: dict[str, Any]) -> None:
    echo = alice.at("echo", binding)
    task = echo.say("hi", messageId="m1")
    for send in (echo.say, echo.start, echo.say_streaming):
        with alice.refused("INVALID_PARAMS", "message.messageId"):
            send(**({"content": "hi"} | other), messageId="m1")
    assert echo.get(task["id"]) == task


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
def test_a_message_id_is_of_one_caller_and_one_agent(alice: Caller, bob: Caller, binding: str) -> None:
    given = params()
    made = {
        peer.send(given)["task"]["id"]
        for peer in (alice.at("echo", binding), alice.at("data", binding), bob.at("echo", binding))
    }
    assert len(made) == 3


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
def test_strangers_without_a_common_history_share_no_message_ids(anonymous: Caller, binding: str) -> None:
    """Else a guessed message would bring back what somebody else was answered."""
    private = anonymous.at("private", binding)
    given = params("guess")
    first, second = private.send(given)["task"], private.send(given)["task"]
    assert first["id"] != second["id"]
    assert private.send({"message": given["message"] | {"parts": [{"text": "other"}]}})["task"]["id"] != first["id"]


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
def test_an_agent_may_take_every_send_as_a_new_one(alice: Caller, binding: str) -> None:
    forgetful = alice.at("forgetful", binding)
    given = params()
    assert len({forgetful.send(given)["task"]["id"] for _ in range(3)}) == forgetful.list()["totalSize"] == 3


@pytest.mark.case("I01")
@pytest.mark.spec("3.3.1")
def test_an_answer_without_a_task_is_repeated_too(alice: Caller, binding: str) -> None:
    direct = alice.at("direct", binding)
    given = params()
    first = direct.send(given)
    with alice.nothing_stored():
        assert direct.send(given) == first
        with direct.stream(given) as stream:
            assert [event.response for event in stream.rest()] == [first]


@pytest.mark.case("I03")
@pytest.mark.spec("3.3.1")
def test_the_same_follow_up_twice(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say("hi")
    given = params("answer", taskId=task["id"])
    done = ask.send(given)["task"]
    with alice.nothing_stored():
        assert ask.send(given)["task"] == done
        with alice.refused("INVALID_PARAMS", "message.messageId"):
            ask.say("other", taskId=task["id"], messageId=given["message"]["messageId"])
    assert [m["role"] for m in ask.get(task["id"])["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]


@pytest.mark.case("I03")
@pytest.mark.spec("3.3.1")
def test_a_follow_up_with_the_id_of_the_first_message(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say("hi", messageId="m1")
    with alice.refused("INVALID_PARAMS", "message.messageId"):
        ask.say("hi", messageId="m1", taskId=task["id"])
    assert ask.get(task["id"]) == task


def both(caller: Caller, slug: str, webs: Sequence[Web]) -> list[Peer]:
    """Both bindings in front of every web process."""
    return [caller.before(web).at(slug, binding) for web in webs for binding in ("jsonrpc", "rest")]


@pytest.mark.case("I04")
@pytest.mark.spec("3.3.1")
@pytest.mark.parametrize("slug", ["echo", "worker-echo"])
@pytest.mark.parametrize("immediately", [False, True])
def test_identical_sends_at_once_are_one_task(
    alice: Caller, deployment: Deployment, web: Web, second_web: Web, slug: str, immediately: bool, worker: object
) -> None:
    """Over both bindings and two web processes."""
    peers = both(alice, slug, [web, second_web])
    given = params(configuration={"returnImmediately": immediately})
    outcomes = at_once([partial(peers[n % 4].send, given) for n in range(12)])
    (task,) = {outcome["task"]["id"] for outcome in outcomes}  # type: ignore[index]
    wait_until(lambda: state(peers[0].get(task)) == "COMPLETED", "the end")
    for peer in peers:
        assert [found["id"] for found in peer.list()["tasks"]] == [task]
    assert terminal_events(deployment, task) == 1
    assert texts(peers[0].get(task)["artifacts"]) == [["hi"]]


@pytest.mark.case("I01")
@pytest.mark.case("I04")
@pytest.mark.spec("3.3.1")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_one_message_through_every_binding_and_process_is_one_task(
    alice: Caller, deployment: Deployment, web: Web, second_web: Web, grpc_server: object, slug: str, worker: object
) -> None:
    """Sends wait, streams attach: JSON-RPC, HTTP+JSON, WebSocket and 0.3 at two web processes, and gRPC."""
    text = "steps 8 60"
    given = params(text)
    older = {"message": {"messageId": given["message"]["messageId"], "role": "user", "kind": "message"}}
    older["message"]["parts"] = [{"kind": "text", "text": text}]
    peers = [*both(alice, slug, [web, second_web]), alice.grpc(slug)]
    callers = [alice, alice.before(second_web)]
    outcomes = at_once(
        [
            *(partial(settled, peer, given) for peer in peers),
            *(partial(streamed, peer, given) for peer in peers),
            *(partial(over_websocket, caller, slug, method, given) for caller in callers for method in METHODS),
            *(partial(streamed_in_0_3, caller, slug, older) for caller in callers),
        ]
    )
    assert {outcome[1:] for outcome in outcomes} == {("COMPLETED", tuple(CHUNKS[:8]))}  # type: ignore[index]
    (task,) = {outcome[0] for outcome in outcomes}  # type: ignore[index]
    assert [found["id"] for found in peers[0].list()["tasks"]] == [task]
    assert terminal_events(deployment, task) == 1
    other = {"message": given["message"] | {"parts": [{"text": "steps 9 60"}]}}
    with alice.nothing_stored():
        for peer in peers:
            for refused in (peer.send, peer.stream):
                with alice.refused("INVALID_PARAMS", "message.messageId"):
                    refused(other)
        for method in METHODS:
            with pytest.raises(Refused) as refusal:
                over_websocket(alice, slug, method, other)
            assert (refusal.value.reason, refusal.value.fields) == ("INVALID_PARAMS", ["message.messageId"])


METHODS = ("SendMessage", "SendStreamingMessage")
Outcome = tuple[str, str, tuple[str, ...]]


def settled(peer: Peer, given: dict[str, Any]) -> Outcome:
    """(id, state, texts) of the task that answers a send."""
    task = peer.send(given)["task"]
    return task["id"], state(task), tuple(texts(task["artifacts"])[0])


def streamed(peer: Peer, given: dict[str, Any]) -> Outcome:
    """(id, last state, texts put together) of a stream."""
    with peer.stream(given) as stream:
        events = stream.rest()
    return events[0].response["task"]["id"], states(events)[-1], tuple(assemble(events))


def over_websocket(caller: Caller, slug: str, method: str, given: dict[str, Any]) -> Outcome:
    """The same over a connection of its own. Raises Refused."""

    async def ask() -> list[dict[str, Any]]:
        async with open_line(caller, slug) as line:
            await line.ask(1, method, given)
            return [await line.result(1)] if method == "SendMessage" else await line.rest(1)

    events = [Event(number, response, b"") for number, response in enumerate(asyncio.run(ask()))]
    return events[0].response["task"]["id"], states(events)[-1], tuple(assemble(events))


def streamed_in_0_3(caller: Caller, slug: str, given: dict[str, Any]) -> Outcome:
    """The same with `message/stream` of 0.3."""
    peer = JsonRpcPeer(caller.client, caller.web.port, slug, caller.headers | {"a2a-version": "0.3"})
    with peer.open("message/stream", given) as stream:
        results = [event.response for event in stream.rest()]
    first = results[0]
    found = [part["text"] for artifact in first.get("artifacts", []) for part in artifact["parts"]]
    for result in results[1:]:
        found += [part["text"] for part in result.get("artifact", {"parts": []})["parts"]]
    statuses = [result["status"]["state"] for result in results if "status" in result]
    return first["id"], statuses[-1].upper(), tuple(found)


@pytest.mark.case("I04")
@pytest.mark.spec("3.3.1")
def test_identical_follow_ups_at_once_are_one(alice: Caller, web: Web, second_web: Web) -> None:
    peers = both(alice, "ask", [web, second_web])
    task = peers[0].say("hi")
    given = params("answer", taskId=task["id"])
    outcomes = at_once([partial(peers[n % 4].send, given) for n in range(12)])
    assert {outcome["task"]["id"] for outcome in outcomes} == {task["id"]}  # type: ignore[index]
    done = peers[0].get(task["id"])
    assert [m["role"] for m in done["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]
    assert texts(done["artifacts"]) == [["answer"]]
