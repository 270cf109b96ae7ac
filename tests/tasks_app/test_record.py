"""A task as JSON: from its row, its history and its artifact events (§4.1.1, §3.2.4, §4.2.2)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from protocol.states import TaskState
from tasks_app.tables.record import Event, EventKind, TaskRecord, assemble, initial_status
from tests.tasks_app.writes import status

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
HISTORY = [f'{{"messageId":"m-{n}"}}' for n in range(1, 4)]


def make_record(**fields: Any) -> TaskRecord:
    values = {"status": initial_status(AT), "state": TaskState.SUBMITTED, "history": list(HISTORY)} | fields
    values |= {"message_count": len(values["history"]), "status_at": AT, "created_at": AT}
    return TaskRecord(id="task-1", agent_id=1, owner="alice", context_id='a "context"', **values)


def chunk(seq: int, artifact_id: str, *texts: str, append: bool = False, **members: Any) -> Event:
    artifact = {"artifactId": artifact_id, "parts": [{"text": t} for t in texts], **members}
    return Event(seq, EventKind.ARTIFACT, json.dumps(artifact), AT, 1, artifact_id=artifact_id, append=append)


def assembled(*chunks: Event) -> list[Any]:
    return [json.loads(a) for a in assemble(list(chunks))]


def test_a_new_task() -> None:
    assert make_record(history=HISTORY[:1]).render() == (
        b'{"id":"task-1","contextId":"a \\"context\\"","status":{"state":"TASK_STATE_SUBMITTED",'
        b'"timestamp":"2026-01-02T03:04:05.678Z"},"history":[{"messageId":"m-1"}]}'
    )


@pytest.mark.spec("3.2.4")
@pytest.mark.parametrize(
    ("length", "expected"),
    [(None, HISTORY), (0, None), (1, HISTORY[2:]), (2, HISTORY[1:]), (3, HISTORY), (4, HISTORY), (2**31 - 1, HISTORY)],
)
def test_history_length(length: int | None, expected: list[str] | None) -> None:
    task = json.loads(make_record().render(length))
    assert task.get("history") == (None if expected is None else [json.loads(m) for m in expected])


def test_an_empty_history_is_left_out() -> None:
    assert "history" not in json.loads(make_record(history=[]).render())


def test_artifacts_and_metadata_are_there_when_there_are_any() -> None:
    record = make_record(chunks=[chunk(1, "x", "a")], metadata='{"n":1.0}')
    assert record.render(0).endswith(
        b',"artifacts":[{"artifactId": "x", "parts": [{"text": "a"}]}],"metadata":{"n":1.0}}'
    )
    assert "artifacts" not in json.loads(record.render(artifacts=False))
    assert {"artifacts", "metadata"}.isdisjoint(json.loads(make_record().render()))


@pytest.mark.spec("4.2.2")
def test_appended_parts_come_in_order() -> None:
    assert assembled(chunk(1, "x", "a"), chunk(2, "x", "b", "c", append=True), chunk(3, "x", "d", append=True)) == [
        {"artifactId": "x", "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}]}
    ]


@pytest.mark.spec("4.2.2")
def test_what_does_not_append_replaces() -> None:
    before = [chunk(1, "x", "a"), chunk(2, "x", "b", append=True)]
    chunks = [*before, chunk(3, "x", "c", name="new"), chunk(4, "x", "d", append=True)]
    assert assembled(*chunks[:3]) == [{"artifactId": "x", "parts": [{"text": "c"}], "name": "new"}]
    assert assembled(*chunks) == [{"artifactId": "x", "parts": [{"text": "c"}, {"text": "d"}], "name": "new"}]


def test_artifacts_keep_the_order_of_their_first_event() -> None:
    chunks = [chunk(1, "x", "1"), chunk(2, "y", "2"), chunk(3, "x", "3", append=True), chunk(4, "x", "4")]
    assert [a["artifactId"] for a in assembled(*chunks)] == ["x", "y"]


def test_an_artifact_of_several_chunks_has_the_first_ones_members_and_all_metadata() -> None:
    first = chunk(1, "x", "a", name="n", description="d", extensions=["e"], metadata={"a": 1, "b": 1})
    second = chunk(2, "x", "b", append=True, name="other", metadata={"b": 2, "c": 3})
    third = chunk(3, "x", "c", append=True)
    assert assembled(first, second, third) == [
        {
            "artifactId": "x",
            "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}],
            "name": "n",
            "description": "d",
            "extensions": ["e"],
            "metadata": {"a": 1, "b": 2, "c": 3},
        }
    ]


def test_metadata_that_comes_with_a_later_chunk_is_kept() -> None:
    (artifact,) = assembled(chunk(1, "x", "a"), chunk(2, "x", "b", append=True, metadata={"k": 1}))
    assert artifact["metadata"] == {"k": 1}


def test_numbers_of_chunks_are_spliced_as_they_are() -> None:
    numbers = ("1.0", "1e400")
    bodies = [f'{{"artifactId":"x","parts":[{{"data":{n}}}],"metadata":{{"m{i}":{n}}}}}' for i, n in enumerate(numbers)]
    events = [Event(i, EventKind.ARTIFACT, b, AT, 1, artifact_id="x", append=i > 0) for i, b in enumerate(bodies)]
    assert assemble(events) == [
        '{"artifactId":"x","parts":[{"data":1.0},{"data":1e400}],"metadata":{"m0":1.0,"m1":1e400}}'
    ]


def test_events_as_stream_responses() -> None:
    """§3.2.3."""
    text = status(TaskState.WORKING, AT)
    working = Event(1, EventKind.STATUS, text, AT, 1, TaskState.WORKING, metadata='{"k":1}')
    assert working.payload("t", "c").decode() == (
        f'{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{text},"metadata":{{"k":1}}}}}}'
    )
    part = Event(2, EventKind.ARTIFACT, '{"artifactId":"x"}', AT, 1, artifact_id="x", append=True, last_chunk=True)
    assert part.payload("t", 'c"').decode() == (
        '{"artifactUpdate":{"taskId":"t","contextId":"c\\"","artifact":{"artifactId":"x"},"append":true,"lastChunk":true}}'
    )
    first = Event(3, EventKind.ARTIFACT, '{"artifactId":"x"}', AT, 1, artifact_id="x")
    assert first.payload("t", "c").decode() == (
        '{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"x"}}}'
    )
    said = Event(4, EventKind.MESSAGE, '{"messageId":"m"}', AT, 1)
    assert said.payload("t", "c") == b'{"message":{"messageId":"m"}}'
    assert said.payload("t", "c") is said.payload("t", "c"), "rendered once for all streams"


def test_a_record_advances_by_what_was_stored() -> None:
    record = make_record(version=4, last_seq=1)
    later = AT + timedelta(seconds=1)
    text = status(TaskState.WORKING, later)
    events = [chunk(2, "x", "a"), Event(3, EventKind.STATUS, text, later, 1, TaskState.WORKING)]
    record.advance(events, ['{"messageId":"a-1"}'], '{"k":1}')
    assert (record.version, record.last_seq, record.message_count) == (5, 3, 4)
    assert (record.state, record.status, record.status_at) == (TaskState.WORKING, text, later)
    assert (record.history[-1], record.metadata) == ('{"messageId":"a-1"}', '{"k":1}')
    assert record.chunks == events[:1]
    record.advance([Event(4, EventKind.MESSAGE, '{"messageId":"m"}', later, 1)], ['{"messageId":"m"}'], None)
    assert (record.state, record.last_seq, record.version) == (TaskState.UNSPECIFIED, 4, 6)
