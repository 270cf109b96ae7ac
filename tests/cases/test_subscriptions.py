"""Area sse, several readers: everybody gets everything, in order, whenever and wherever they join (§3.1.6, §3.5.2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cases.reading import CHUNKS, assemble, at_work, only_grow, state, states, texts
from tests.support.callers import Caller
from tests.support.deployment import Web, wait_until
from tests.support.events import Event
from tests.support.peers import Peer
from tests.support.refusals import Refused


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
    late, early = sorted(([event.response for event in events] for events in rest), key=len)
    assert early[len(early) - len(late) :] == late
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
@pytest.mark.parametrize(("slug", "races"), [("steps", 100), ("steps-worker", 50)])
def test_a_subscription_around_the_end(
    alice: Caller, second_web: Web, binding: str, slug: str, races: int, worker: object
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
        outcomes = list(pool.map(subscribe, range(races)))
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
def test_last_event_id_resumes_where_the_caller_was(alice: Caller, json_binding: str) -> None:
    """The first event is the Task as it was at that event; together they repeat nothing."""
    steps = alice.at("steps", json_binding)
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
def test_any_last_event_id_is_fine(alice: Caller, json_binding: str, last: str) -> None:
    hold = alice.at("hold", json_binding)
    task = at_work(hold)["id"]
    value = last.encode().decode("latin-1")
    with hold.with_headers(last_event_id=value).subscribe(task) as stream:
        first = stream.next()
        assert first.kind == "task"
        hold.cancel(task)
        events = [first, *stream.rest()]
    assert states(events)[-1] == "CANCELED"
    assert only_grow(events)


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
