"""Area sse: the frames, what a stream begins and ends with, who gets what (§3.1.2, §3.1.6, §3.5.2, §9.4.2, §11.7)."""

from __future__ import annotations

import json
import re

import pytest
from django.conf import settings

from tests.cases.reading import CHUNKS, assemble, at_work, only_grow, state, states, texts
from tests.support.callers import Caller
from tests.support.deployment import wait_until
from tests.support.peers import message
from tests.support.refusals import ID
from tests.support.wire import Connection, request


@pytest.mark.case("S01")
@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
@pytest.mark.parametrize("heard", [0, 1, 3])
def test_a_task_outlives_its_stream(alice: Caller, binding: str, slug: str, heard: int, worker: object) -> None:
    peer = alice.at(slug, binding)
    with peer.say_streaming("steps 5 20") as stream:
        for _ in range(heard):
            stream.next()
    (task,) = wait_until(lambda: peer.list(status="TASK_STATE_COMPLETED", includeArtifacts=True)["tasks"], "the end")
    assert texts(task["artifacts"]) == [CHUNKS[:5]]


@pytest.mark.case("S01")
@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("path", ["message:send", "message:stream"])
def test_a_task_outlives_a_caller_who_does_not_even_read(alice: Caller, path: str) -> None:
    steps = alice.rest("steps")
    body = json.dumps({"message": message("steps 2 20")}).encode()
    lines = [f"{name}: {value}" for name, value in alice.headers.items()]
    with Connection(alice.web.port, request("POST", f"/agents/steps/{path}", body, *lines)):
        wait_until(lambda: steps.list()["totalSize"] == 1, "the task")
    wait_until(lambda: steps.list(status="TASK_STATE_COMPLETED")["totalSize"] == 1, "the end")


@pytest.mark.case("S03")
@pytest.mark.spec("9.4.2")
def test_the_bytes_of_a_stream(alice: Caller, json_binding: str) -> None:
    with alice.at("steps", json_binding).say_streaming("steps 2 30") as stream:
        events = stream.rest()
        assert stream.ended
        assert stream.header("content-type") == "text/event-stream; charset=utf-8"
        raw = stream.raw
    assert raw.endswith(b"\n\n")
    blocks = raw.removesuffix(b"\n\n").split(b"\n\n")
    assert [re.match(rb"id: \d+\ndata: \{.*\}\Z", block) is not None for block in blocks] == [True] * len(events)
    assert b"\r" not in raw
    assert b"event:" not in raw
    assert b"retry:" not in raw
    if json_binding == "jsonrpc":
        for event in events:
            assert event.data.startswith(b'{"jsonrpc":"2.0","id":"%b","result":{' % ID.encode())
    assert [event.kind for event in events if event.kind != "statusUpdate"] == [
        "task", "artifactUpdate", "artifactUpdate"
    ]  # fmt: skip
    assert only_grow(events)


@pytest.mark.case("S03")
@pytest.mark.spec("9.4.2")
@pytest.mark.parametrize("id", ['"a\\nb"', "9007199254740993", "null", '"\\u00e9"'])
def test_every_event_has_the_id_of_the_request_as_it_was(alice: Caller, id: str) -> None:
    body = '{"jsonrpc":"2.0","id":%s,"method":"SendStreamingMessage","params":%s}'
    content = (body % (id, json.dumps({"message": message()}))).encode()
    lines = [f"{name}: {value}" for name, value in alice.headers.items()]
    with Connection(alice.web.port, request("POST", "/agents/echo", content, *lines)) as connection:
        assert connection.read_head() == 200
        raw = connection.read_body()
    data = [line for line in raw.split(b"\n") if line.startswith(b"data: ")]
    assert data
    assert all(line.startswith(f'data: {{"jsonrpc":"2.0","id":{id},"result":{{'.encode()) for line in data)


PRETTY = json.dumps({"a": [1, {"b": "c\nd"}], "e": {}}, indent=4).replace("\n", "\r\n")


@pytest.mark.case("S03")
@pytest.mark.spec("9.4.2")
def test_line_breaks_between_members_do_not_break_an_event(alice: Caller, binding: str) -> None:
    """`data` and metadata are passed on as they came, but one event stays one data line."""
    inner = f'"data":{PRETTY},"metadata":{PRETTY}'
    given = f'{{"message":{{"messageId":"m","role":"ROLE_USER","metadata":{PRETTY},"parts":[{{{inner}}}]}}}}'
    data = alice.at("data", binding)
    with data.stream(given) as stream:
        events = stream.rest()
    assert states(events)[-1] == "COMPLETED"
    (task,) = data.list(includeArtifacts=True, historyLength=5)["tasks"]
    value = json.loads(PRETTY)
    assert task["artifacts"][0]["parts"] == [{"data": value, "metadata": value}]
    assert task["history"][0]["metadata"] == value
    with alice.at("described", binding).say_streaming("x") as stream:
        assert states(stream.rest())[-1] == "COMPLETED"


@pytest.mark.case("S05")
@pytest.mark.case("S06")
@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("slug", ["hold", "hold-worker"])
def test_an_idle_stream_is_kept_alive_by_comments(alice: Caller, json_binding: str, slug: str, worker: object) -> None:
    peer = alice.at(slug, json_binding)
    with peer.say_streaming("hold") as stream:
        first = stream.next()
        task = first.response["task"]
        started = [first] if first.state == "WORKING" else [first, *stream.until("WORKING")]
        assert stream.wait_for_comment() == b": keep-alive"
        assert stream.wait_for_comment() == b": keep-alive"
        peer.cancel(task["id"])
        events = [*started, *stream.rest()]
    assert states(events) in (["WORKING", "CANCELED"], ["SUBMITTED", "WORKING", "CANCELED"])
    assert len(events) == len(states(events))


@pytest.mark.case("S05")
@pytest.mark.spec("3.5.2")
def test_the_comments_come_often_enough_for_usual_proxies() -> None:
    """They cut what is silent for 60 s, some for 30; here the tests' own host is quicker still."""
    assert settings.KEEP_ALIVE_SECONDS == 15


@pytest.mark.case("S09")
@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_a_subscription_begins_with_the_task_so_far(alice: Caller, binding: str, slug: str, worker: object) -> None:
    peer = alice.at(slug, binding)
    with peer.say_streaming("steps 10 30") as stream:
        task = stream.next().response["task"]
        while stream.next().kind != "artifactUpdate":
            pass
        stream.next()
        with peer.subscribe(task["id"]) as subscription:
            first = subscription.next()
            events = [first, *subscription.rest()]
    assert first.kind == "task"
    assert first.state == "WORKING"
    assert assemble([first])[:2] == CHUNKS[:2]
    assert first.response["task"]["history"][0]["parts"] == [{"text": "steps 10 30"}]
    assert assemble(events) == CHUNKS[:10]
    assert states(events) == ["WORKING", "COMPLETED"]


@pytest.mark.case("S09")
@pytest.mark.spec("3.1.2")
def test_a_stream_begins_with_the_task(alice: Caller, binding: str) -> None:
    with alice.at("steps", binding).say_streaming("steps 1 30", contextId="c") as stream:
        events = stream.rest()
    task = events[0].response["task"]
    assert (events[0].kind, task["contextId"]) == ("task", "c")
    for event in events[1:]:
        assert (event.response[event.kind]["taskId"], event.response[event.kind]["contextId"]) == (task["id"], "c")


@pytest.mark.case("S11")
@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("slug", ["hold", "ask", "auth"])
def test_a_subscription_stays_open_until_the_end(alice: Caller, json_binding: str, slug: str) -> None:
    """Also through INPUT_REQUIRED and AUTH_REQUIRED (§3.1.6: terminal states only)."""
    peer = alice.at(slug, json_binding)
    task = at_work(peer) if slug == "hold" else peer.say()
    with peer.subscribe(task["id"]) as subscription:
        assert subscription.next().state == state(task)
        subscription.wait_for_comment()
        if slug == "hold":
            peer.cancel(task["id"])
            assert states(subscription.rest()) == ["CANCELED"]
        else:
            peer.say("go on", taskId=task["id"])
            assert states(subscription.rest()) == ["WORKING", "COMPLETED"]
        assert subscription.ended


@pytest.mark.case("S11")
@pytest.mark.spec("3.1.2")
def test_a_stream_ends_when_input_is_required(alice: Caller, json_binding: str) -> None:
    ask = alice.at("ask", json_binding)
    with ask.say_streaming("hi") as stream:
        events = stream.rest()
    assert states(events)[-1] == "INPUT_REQUIRED"
    task = events[0].response["task"]["id"]
    with ask.say_streaming("answer", taskId=task) as stream:
        more = stream.rest()
    assert more[0].kind == "task"
    assert more[0].response["task"]["history"][0]["parts"] == [{"text": "hi"}]
    assert states(more)[-1] == "COMPLETED"
    assert assemble(more) == ["answer"]
    assert more[0].id > events[-1].id


@pytest.mark.case("S11")
@pytest.mark.spec("7.6.1")
def test_a_stream_waits_while_authorization_is_required(alice: Caller, json_binding: str) -> None:
    auth = alice.at("auth", json_binding)
    with auth.say_streaming("hi") as stream:
        first = stream.next()
        if first.state != "AUTH_REQUIRED":
            stream.until("AUTH_REQUIRED")
        stream.wait_for_comment()
        auth.say("authorized", taskId=first.response["task"]["id"])
        assert states(stream.rest()) == ["WORKING", "COMPLETED"]


@pytest.mark.case("S13")
@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("slug", ["echo", "boom", "reject"])
def test_there_is_no_stream_of_what_has_ended(alice: Caller, binding: str, slug: str) -> None:
    """One document, no event; refusals of a stream are checked for that wherever they occur."""
    peer = alice.at(slug, binding)
    task = peer.say("hi")
    with alice.refused("UNSUPPORTED_OPERATION"):
        peer.subscribe(task["id"])
    with alice.refused("TASK_NOT_FOUND"):
        peer.subscribe("none")


@pytest.mark.case("S13")
@pytest.mark.spec("3.1.2")
def test_a_stream_that_cannot_begin_is_one_document(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    with alice.refused("INVALID_PARAMS", "message.parts[0]"):
        echo.say_streaming([{}])
    with alice.refused("CONTENT_TYPE_NOT_SUPPORTED"):
        echo.say_streaming([{"raw": "AAA=", "mediaType": "image/png"}])
    with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        config = {"url": "https://hook.test/"}
        alice.at("deaf", binding).say_streaming("hi", configuration={"taskPushNotificationConfig": config})


@pytest.mark.case("S21")
@pytest.mark.spec("3.3.4")
def test_an_agent_that_does_not_stream(alice: Caller, binding: str) -> None:
    quiet = alice.at("quiet", binding)
    task = quiet.start("steps 50 20")
    with alice.refused_while_running("UNSUPPORTED_OPERATION"):
        quiet.say_streaming("hi")
    for id in (task["id"], "none"):
        with alice.refused_while_running("UNSUPPORTED_OPERATION"):
            quiet.subscribe(id)
    assert quiet.list()["totalSize"] == 1
    assert state(quiet.cancel(task["id"])) == "CANCELED"
