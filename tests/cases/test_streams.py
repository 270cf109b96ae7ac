"""Area sse: the frames, what a stream begins and ends with, who gets what (§3.1.2, §3.1.6, §3.5.2, §9.4.2, §11.7)."""

from __future__ import annotations

import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cases.test_lifecycle import at_work, state, texts
from tests.support.callers import Caller
from tests.support.deployment import Web, wait_until
from tests.support.events import Event
from tests.support.peers import ID, Peer, Refused, message
from tests.support.wire import Connection, request

CHUNKS = [f"chunk {number}\n" for number in range(1, 31)]


def states(events: list[Event]) -> list[str]:
    return [event.state for event in events if event.state]


def assemble(events: list[Event]) -> list[str]:
    """The texts of the one artifact, as a client puts it together from a snapshot and the updates after it (§4.2.2)."""
    found: list[str] = []
    for event in events:
        if event.kind == "task":
            found = [text for artifact in texts(event.response["task"].get("artifacts", [])) for text in artifact]
        elif event.kind == "artifactUpdate":
            update = event.response["artifactUpdate"]
            parts = [part["text"] for part in update["artifact"]["parts"]]
            found = [*found, *parts] if update.get("append") else parts
    return found


def only_grow(events: list[Event]) -> bool:
    numbers = [event.id for event in events]
    return all(a < b for a, b in itertools.pairwise(numbers))


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
def test_the_bytes_of_a_stream(alice: Caller, binding: str) -> None:
    with alice.at("steps", binding).say_streaming("steps 2 30") as stream:
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
    if binding == "jsonrpc":
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
def test_an_idle_stream_is_kept_alive_by_comments(alice: Caller, binding: str, slug: str, worker: object) -> None:
    peer = alice.at(slug, binding)
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
def test_a_subscription_stays_open_until_the_end(alice: Caller, binding: str, slug: str) -> None:
    """Also through INPUT_REQUIRED and AUTH_REQUIRED (§3.1.6: terminal states only)."""
    peer = alice.at(slug, binding)
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
def test_a_stream_ends_when_input_is_required(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
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
def test_a_stream_waits_while_authorization_is_required(alice: Caller, binding: str) -> None:
    auth = alice.at("auth", binding)
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
        echo.say_streaming("hi", configuration={"taskPushNotificationConfig": {"url": "https://hook.test/"}})


@pytest.mark.case("S15")
@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_every_subscriber_gets_every_event(
    alice: Caller, second_web: Web, binding: str, slug: str, worker: object
) -> None:
    """Also in another process, and when one of them leaves."""
    peers = [alice.at(slug, binding), alice.before(second_web).at(slug, binding)]
    task = at_work(peers[0], "steps 10 40")["id"]
    streams = [peers[0].subscribe(task), peers[1].subscribe(task), peers[0].subscribe(task)]
    first = [stream.next() for stream in streams]
    streams[2].next()
    streams[2].close()
    rest = [stream.rest() for stream in streams[:2]]
    for stream in streams[:2]:
        stream.close()
    common = [[(e.id, e.response) for e in events if e.id > max(first[0].id, first[1].id)] for events in rest]
    assert common[0] == common[1]
    for snapshot, events in zip(first, rest, strict=False):
        assert assemble([snapshot, *events]) == CHUNKS[:10]
        assert [event.id for event in events] == list(range(snapshot.id + 1, snapshot.id + 1 + len(events)))
        assert events[-1].state == "COMPLETED"


@pytest.mark.case("S16")
@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("slug", ["hold", "hold-worker"])
def test_a_cancel_reaches_every_stream_in_every_process(
    alice: Caller, second_web: Web, binding: str, slug: str, worker: object
) -> None:
    here, there = alice.at(slug, binding), alice.before(second_web).at(slug, binding)
    task = at_work(here)["id"]
    streams = [here.subscribe(task), there.subscribe(task), there.subscribe(task)]
    assert [stream.next().state for stream in streams] == ["WORKING"] * 3
    assert state(there.cancel(task)) == "CANCELED"
    for stream in streams:
        assert states(stream.rest()) == ["CANCELED"]
        stream.close()
    assert state(here.get(task)) == "CANCELED"


@pytest.mark.case("S17")
@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_a_subscription_around_the_end(
    alice: Caller, second_web: Web, binding: str, slug: str, worker: object
) -> None:
    """Refused, or a stream that shows the end and closes; half of them in the other process."""
    here, there = alice.at(slug, binding), alice.before(second_web).at(slug, binding)

    def subscribe(number: int) -> str:
        task = here.start(f"steps 1 {number % 20}")
        try:
            with (there if number % 2 else here).subscribe(task["id"]) as stream:
                events = stream.rest()
        except Refused as refusal:
            return refusal.reason
        assert assemble(events) == CHUNKS[:1]
        assert only_grow(events)
        return states(events)[-1]

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(subscribe, range(100)))
    assert set(outcomes) <= {"COMPLETED", "UNSUPPORTED_OPERATION"}
    assert "COMPLETED" in outcomes


@pytest.mark.case("S19")
@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_a_reconnection_has_no_gap_and_no_repetition(
    alice: Caller, second_web: Web, binding: str, slug: str, worker: object
) -> None:
    here, there = alice.at(slug, binding), alice.before(second_web).at(slug, binding)
    heard: list[Event] = []
    with here.say_streaming("steps 30 10") as stream:
        while sum(event.kind == "artifactUpdate" for event in heard) < 5:
            heard.append(stream.next())
    task = heard[0].response["task"]["id"]
    with there.subscribe(task) as stream:
        events = stream.rest()
    assert assemble(events) == CHUNKS
    assert texts(here.get(task)["artifacts"]) == [CHUNKS]
    assert sum(event.response.get("artifactUpdate", {}).get("lastChunk", False) for event in events) == 1


@pytest.mark.case("S20")
@pytest.mark.spec("3.1.6")
def test_last_event_id_resumes_where_the_caller_was(alice: Caller, binding: str) -> None:
    """The first event is the Task as it was at that event; together they repeat nothing."""
    steps = alice.at("steps", binding)
    with steps.say_streaming("steps 20 20") as stream:
        heard = [stream.next() for _ in range(6)]
    task = heard[0].response["task"]["id"]
    with steps.with_headers(last_event_id=str(heard[-1].id)).subscribe(task) as stream:
        first = stream.next()
        rest = stream.rest()
    assert (first.kind, first.id) == ("task", heard[-1].id)
    assert assemble([first]) == assemble(heard)
    assert [event.id for event in rest] == list(range(first.id + 1, first.id + 1 + len(rest)))
    assert assemble([*heard, *rest]) == assemble([first, *rest]) == CHUNKS[:20]


@pytest.mark.case("S20")
@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize(
    "last", ["junk", "", "-1", "0", "99999", "9" * 30, "1.5", "3, 4", "٣", "3;4", "0x3", "１"], ids=ascii
)
def test_any_last_event_id_is_fine(alice: Caller, binding: str, last: str) -> None:
    hold = alice.at("hold", binding)
    task = at_work(hold)["id"]
    value = last.encode().decode("latin-1")
    with hold.with_headers(last_event_id=value).subscribe(task) as stream:
        first = stream.next()
        assert first.kind == "task"
        hold.cancel(task)
        events = [first, *stream.rest()]
    assert states(events)[-1] == "CANCELED"
    assert only_grow(events)


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


@pytest.mark.spec("3.5.2")
def test_a_reader_that_falls_behind_misses_nothing(alice: Caller, binding: str) -> None:
    """More events than a process remembers, to somebody who reads late."""
    steps = alice.at("steps", binding)
    with steps.say_streaming("steps 2000 0") as stream:
        wait_until(lambda: steps.list(status="TASK_STATE_COMPLETED")["totalSize"], "the end")
        events = stream.rest()
    assert assemble(events) == [f"chunk {number}\n" for number in range(1, 2001)]
    assert [event.id for event in events] == list(range(events[0].id, events[0].id + len(events)))


@pytest.mark.spec("3.5.2")
def test_streams_of_many_callers_do_not_mix(alice: Caller, bob: Caller, binding: str) -> None:
    def follow(number: int) -> tuple[list[str], list[str]]:
        peer: Peer = (alice, bob)[number % 2].at("steps", binding)
        with peer.say_streaming(f"steps {number} 5") as stream:
            events = stream.rest()
        ids: set[Any] = {event.response[event.kind].get("taskId") for event in events[1:]}
        assert ids == {events[0].response["task"]["id"]}
        return assemble(events), states(events)[-1:]

    numbers = range(1, 25)
    with ThreadPoolExecutor(len(numbers)) as pool:
        outcomes = list(pool.map(follow, numbers))
    assert outcomes == [(CHUNKS[:number], ["COMPLETED"]) for number in numbers]
