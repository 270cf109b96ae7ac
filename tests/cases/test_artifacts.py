"""Area artifacts: how updates add up to artifacts, and what an agent may not say (§4.1.7, §4.2.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.reading import state, texts
from tests.support.callers import Caller
from tests.support.events import Event


def published(events: list[Event]) -> list[dict[str, Any]]:
    """All artifacts and chunks that a stream told of; a quick agent's are in its first event already."""
    updates = [event.response["artifactUpdate"]["artifact"] for event in events if event.kind == "artifactUpdate"]
    return [*events[0].response["task"].get("artifacts", []), *updates]


@pytest.mark.case("A01")
@pytest.mark.spec("4.2.2")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_appended_chunks_are_one_artifact(alice: Caller, binding: str, slug: str, count: int, worker: object) -> None:
    peer = alice.at(slug, binding)
    with peer.say_streaming(f"steps {count} 30") as stream:
        events = stream.rest()
    updates = [event.response["artifactUpdate"] for event in events if event.kind == "artifactUpdate"]
    assert [update.get("append", False) for update in updates] == [number > 0 for number in range(count)]
    assert [update.get("lastChunk", False) for update in updates] == [number == count - 1 for number in range(count)]
    (identity,) = {update["artifact"]["artifactId"] for update in updates}
    (artifact,) = peer.get(events[0].response["task"]["id"])["artifacts"]
    assert artifact == {
        "artifactId": identity,
        "name": "steps",
        "parts": [{"text": f"chunk {number}\n"} for number in range(1, count + 1)],
    }


@pytest.mark.case("A03")
@pytest.mark.spec("4.2.2")
def test_an_update_that_does_not_append_replaces(alice: Caller, binding: str) -> None:
    replacing = alice.at("replacing", binding)
    task = replacing.say()
    assert state(task) == "COMPLETED"
    assert texts(task["artifacts"]) == [["b"]]
    assert replacing.get(task["id"]) == task
    assert replacing.list(includeArtifacts=True)["tasks"][0]["artifacts"] == task["artifacts"]


@pytest.mark.case("A05")
@pytest.mark.spec("4.2.2")
def test_an_artifact_that_is_complete_takes_no_more(alice: Caller, binding: str) -> None:
    reopening = alice.at("reopening", binding)
    with reopening.say_streaming("x") as stream:
        events = stream.rest()
    assert texts(published(events)) == [["a"]]
    assert events[-1].state == "FAILED"
    task = reopening.get(events[0].response["task"]["id"])
    assert (state(task), texts(task["artifacts"])) == ("FAILED", [["a"]])


@pytest.mark.case("A06")
@pytest.mark.spec("4.1.7")
def test_an_artifact_without_parts_is_not_published(alice: Caller, binding: str) -> None:
    empty = alice.at("empty", binding)
    with empty.say_streaming("x") as stream:
        events = stream.rest()
    assert b'"parts":[]' not in stream.raw
    assert published(events) == []
    task = empty.get(events[0].response["task"]["id"])
    assert state(task) == "FAILED"
    assert "artifacts" not in task


@pytest.mark.spec("4.2.2")
def test_an_append_to_nothing_makes_the_artifact(alice: Caller, binding: str) -> None:
    """With all that an artifact has; a line break in its metadata stays inside one event."""
    described = alice.at("described", binding)
    with described.say_streaming("x") as stream:
        events = stream.rest()
    expected = {
        "artifactId": "X",
        "name": "Name",
        "parts": [{"text": "a", "mediaType": "text/plain", "filename": "a.txt"}],
        "metadata": {"line": "one\ntwo", "n": 1},
    }
    assert published(events) == [expected]
    assert [event.response["artifactUpdate"].get("append") for event in events if event.kind == "artifactUpdate"] in (
        [],
        [None],
    )
    assert described.get(events[0].response["task"]["id"])["artifacts"] == [expected]
