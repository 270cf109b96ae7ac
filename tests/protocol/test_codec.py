"""Printing, stored text, search text, fingerprints, limits of nesting (case W33)."""

from __future__ import annotations

import json
import time

import pytest
from msgspec import Raw

from protocol import protojson
from protocol.codec import decode, encode, fingerprint, load, plain_text
from protocol.errors import ParseError
from protocol.json_text import DEPTH_MAX, too_deep
from protocol.model import (
    Artifact,
    ListTaskPushNotificationConfigsResponse,
    ListTasksResponse,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from protocol.requests import SendMessageRequest
from protocol.states import TaskState
from tests.protocol.support import printed, send, violations

TASK = Task(
    id="t1",
    context_id="c1",
    status=TaskStatus(state=TaskState.COMPLETED, timestamp="2025-10-28T10:30:00.000Z"),
    artifacts=[Artifact(artifact_id="a", parts=[Part(data=Raw(b'{"n":1.0}'))])],
    history=[Message(message_id="m", role=Role.AGENT, parts=[Part(text="x")])],
)


def test_prints_only_what_is_there() -> None:
    assert encode(TASK) == (
        b'{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED",'
        b'"timestamp":"2025-10-28T10:30:00.000Z"},"artifacts":[{"artifactId":"a","parts":[{"data":{"n":1.0}}]}],'
        b'"history":[{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}]}'
    )
    assert encode(Task(id="t", status=TaskStatus(state=TaskState.WORKING))) == (
        b'{"id":"t","status":{"state":"TASK_STATE_WORKING"}}'
    )


def test_stored_text_loads_to_the_same() -> None:
    assert encode(load(Task, encode(TASK))) == encode(TASK)
    assert encode(load(Task, encode(TASK).decode())) == encode(TASK)
    assert encode(decode(Task, encode(TASK))) == encode(TASK)


@pytest.mark.spec("3.1.4")
def test_a_page_of_tasks_always_has_its_four_fields() -> None:
    page = ListTasksResponse(tasks=[], next_page_token="", page_size=50, total_size=0)
    assert encode(page) == b'{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}'
    assert decode(ListTasksResponse, b'{"pageSize":50}') == page
    assert encode(ListTaskPushNotificationConfigsResponse(configs=[])) == b'{"configs":[]}'


@pytest.mark.spec("3.2.3")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"{}", [("", "must have one of task, message, statusUpdate, artifactUpdate")]),
        (b'{"task":{"id":"t","status":{}}}', [("task.status.state", "is required")]),
        (b'{"task":{"id":"t","status":{"state":0}}}', [("task.status.state", "is required")]),
        (b'{"task":{"id":"t"}}', [("task.status", "is required")]),
        (
            b'{"statusUpdate":{"taskId":"t","status":{"state":"working"}}}',
            [("statusUpdate.contextId", "is required"), ("statusUpdate.status.state", None)],
        ),
        (
            b'{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a"}}}',
            [("artifactUpdate.artifact.parts", "is required")],
        ),
    ],
)
def test_refuses_incomplete_events(data: bytes, expected: list[tuple[str, str | None]]) -> None:
    found = violations(StreamResponse, data)
    assert [field for field, _ in found] == [field for field, _ in expected]
    assert all(text in (None, shown) for (_, shown), (_, text) in zip(found, expected, strict=True))


@pytest.mark.spec("5.6.1")
def test_timestamps_of_others_are_brought_to_utc() -> None:
    data = b'{"taskId":"t","contextId":"c","status":{"state":2,"timestamp":"2025-10-28T12:30:00+02:00"}}'
    event = decode(TaskStatusUpdateEvent, data)
    assert event.status == TaskStatus(state=TaskState.WORKING, timestamp="2025-10-28T10:30:00Z")
    wrong = violations(TaskStatusUpdateEvent, data.replace(b"+02:00", b""))
    assert [field for field, _ in wrong] == ["status.timestamp"]


def test_plain_text_is_what_can_be_searched() -> None:
    parts = [Part(text="a\0b"), Part(url="https://e.test"), Part(text=""), Part(data=Raw(b'"no"')), Part(text="c")]
    assert plain_text(parts) == "ab\n\nc"
    assert plain_text([]) == ""


SAME = [
    send(metadata='{"a":1,"b":[1.5,{"c":null}]}'),
    send(metadata='{ "b" : [ 1.50 , {"c":null} ], "a":1.0 }'),
    send(metadata='{"b":[15e-1,{"c":null}],"a":1e0}', kind='"message"', role="1"),
    b'{"message":{"metadata":{"\\u0061":1,"b":[1.5,{"c":null}]},"parts":[{"text":"\\u0068i"}],'
    b'"role":"ROLE_USER","message_id":"m1","contextId":null}}',
]


@pytest.mark.spec("3.3.1")
def test_fingerprints_ignore_spelling() -> None:
    prints = {fingerprint(decode(SendMessageRequest, data)) for data in SAME}
    assert len(prints) == 1
    assert len(prints.pop()) == 64


def test_fingerprints_of_plain_requests_ignore_spelling() -> None:
    plain = fingerprint(decode(SendMessageRequest, send()))
    for data in (send(role="1"), b" " + send(extensions="[]"), send('{"text":"hi","raw":null}', unknown="1")):
        assert fingerprint(decode(SendMessageRequest, data)) == plain


@pytest.mark.parametrize(
    "data",
    [
        send('{"text":"hi "}'),
        send(contextId='"c"'),
        send(messageId='"m2"'),
        send('{"text":"hi"},{"text":"hi"}'),
        send(metadata="{}"),
        send(metadata='{"a":1}'),
        send(metadata='{"a":"1"}'),
        send(metadata='{"a":9007199254740993}'),
        send(metadata='{"a":9007199254740992}'),
        send()[:-1] + b',"configuration":{"returnImmediately":true}}',
        send()[:-1] + b',"tenant":"t"}',
        send()[:-1] + b',"metadata":{"a":1}}',
    ],
)
def test_fingerprints_tell_bodies_apart(data: bytes) -> None:
    request = decode(SendMessageRequest, data)
    others = [send(), send(metadata='{"a":2}')]
    assert fingerprint(request) not in {fingerprint(decode(SendMessageRequest, other)) for other in others}
    assert fingerprint(request) == fingerprint(decode(SendMessageRequest, b" " + encode(request)))


def nested(levels: int, open: str = "[", close: str = "]") -> str:
    return open * levels + close * levels


@pytest.mark.spec("13.4")
@pytest.mark.parametrize("rest", ["", ',"kind":"data"'])
def test_nesting_has_one_limit_in_every_spelling(rest: str) -> None:
    # request, message, parts and part are four levels.
    fits = send(f'{{"data":{nested(DEPTH_MAX - 4)}{rest}}}')
    assert printed(decode(SendMessageRequest, fits))["message"]["parts"][0]["data"]
    for levels in (DEPTH_MAX - 3, 500, 5_000, 500_000):
        with pytest.raises(ParseError, match="nested deeper than 100 levels"):
            decode(SendMessageRequest, send(f'{{"data":{nested(levels)}{rest}}}'))
        with pytest.raises(ParseError):
            decode(SendMessageRequest, send(metadata='{"a":' * (levels + 2) + "1" + "}" * (levels + 2)))
    assert decode(SendMessageRequest, send()).message.message_id == "m1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (nested(100), False),
        (nested(101), True),
        (nested(60) + nested(60), False),
        ("[" + "{}," * 500 + "{}]", False),
        ('"' + "[" * 500 + '"', False),
        ('"' + '\\"[' * 500 + '"', False),
        ('"\\\\"' + "[" * 101, True),
        ('{"' + "[" * 500 + '":' + nested(99) + "}", False),
        ('{"' + "[" * 500 + '":' + nested(100) + "}", True),
        ('"' + "[" * 500, False),
        ("]" * 500, False),
    ],
)
def test_depth_counts_brackets_outside_of_strings(text: str, expected: bool) -> None:
    assert too_deep(text.encode()) is expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * 101 + b'\\"' * 500_000, id="quotes without end"),
        pytest.param(b'["' + b'\\"[' * 500_000, id="one long string"),
        pytest.param(b"[" + b"[]," * 500_000 + b"[]]", id="wide"),
    ],
)
def test_hostile_text_takes_linear_time(text: bytes) -> None:
    start = time.perf_counter()
    too_deep(text)
    # A quadratic scan takes minutes; this takes some 50 ms.
    assert time.perf_counter() - start < 5


def test_the_plain_reading_is_the_tolerant_one() -> None:
    data = send('{"data":{"a":1.0}},{"raw":"AA=="},{"url":"u"}', metadata='{"b":2}')
    plain, tolerant = decode(SendMessageRequest, data), protojson.read(SendMessageRequest, data)
    assert encode(plain) == encode(tolerant) == data
    assert json.loads(data) == printed(plain)
