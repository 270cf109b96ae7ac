"""The task REST dialect as a pure translation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import codec
from protocol.dialects import task_rest
from protocol.errors import A2AError
from protocol.requests import SendMessageRequest
from protocol.states import TaskState
from tests.protocol.dialects.test_drafts import messages, values

TASK = {
    "id": "t",
    "contextId": "s",
    "status": {"state": "TASK_STATE_WORKING", "timestamp": "2025-01-15T09:28:00.000Z"},
}
SAID = {"messageId": "m", "role": "ROLE_AGENT", "contextId": "s", "taskId": "t", "parts": [{"text": "a"}, {"data": 1}]}


def task(state: str = "WORKING", **members: Any) -> bytes:
    return json.dumps(TASK | {"status": TASK["status"] | {"state": f"TASK_STATE_{state}"}} | members).encode()  # type: ignore[operator]


def written(*args: Any, **members: Any) -> Any:
    return json.loads(task_rest.write_task(task(*args, **members)))


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("SUBMITTED", "submitted"),
        ("WORKING", "working"),
        ("COMPLETED", "completed"),
        ("FAILED", "failed"),
        ("CANCELED", "canceled"),
        ("REJECTED", "failed"),
        ("INPUT_REQUIRED", "input-required"),
        ("AUTH_REQUIRED", "auth-required"),
    ],
)
def test_states(state: str, word: str) -> None:
    assert written(state)["status"]["state"] == word
    assert set(task_rest.STATES) == set(TaskState)


@pytest.mark.parametrize(
    ("metadata", "progress"),
    [
        ({"progress": 0.45}, 0.45),
        ({"progress": 0}, 0),
        ({"progress": 1}, 1),
        ({"progress": 45}, 0),
        ({"progress": -0.1}, 0),
        ({"progress": "0.5"}, 0),
        ({"progress": True}, 0),
        ({"progress": None}, 0),
        ({}, 0),
    ],
)
def test_progress(metadata: dict[str, Any], progress: float) -> None:
    assert written(metadata=metadata)["status"]["progress"] == progress
    assert written("COMPLETED", metadata=metadata)["status"]["progress"] == 1


def test_the_message_of_a_status_is_its_text() -> None:
    status = {**TASK["status"], "message": SAID | {"parts": [{"text": "a"}, {"data": 1}, {"text": "b"}]}}  # type: ignore[dict-item]
    assert written(status=status)["status"]["message"] == "a\nb"


def test_what_was_said() -> None:
    user = {"messageId": "n", "role": "ROLE_USER", "parts": [{"url": "u", "filename": "f", "mediaType": "a/b"}]}
    status = {**TASK["status"], "message": SAID}  # type: ignore[dict-item]
    assert json.loads(task_rest.write_messages(task(status=status, history=[user]))) == [
        {
            "role": "user",
            "parts": [{"type": "file", "file": {"name": "f", "mimeType": "a/b", "uri": "u"}}],
            "messageId": "n",
        },
        {"role": "agent", "parts": [{"type": "text", "text": "a"}, {"type": "data", "data": 1}], "messageId": "m"},
    ]


def test_a_follow_up_names_its_task_whatever_the_body_says() -> None:
    body = b'{"message":{"role":"user","parts":[{"text":"a"}],"taskId":"x","contextId":"c"}}'
    assert task_rest.read_message(body, "t").request.message.task_id == "t"
    new = task_rest.read_task(body).request.message
    assert (new.task_id, new.context_id) == ("", "c")


def test_metadata_is_kept_as_it_came_without_the_callback() -> None:
    body = b'{"message":{"role":"user","parts":[{"text":"a"}]},"metadata":{"n":1.0,"callback_url":"https://h.test/"}}'
    read = task_rest.read_task(body)
    assert read.metadata == '{"n":1.0}'
    config = read.request.configuration.task_push_notification_config  # type: ignore[union-attr]
    assert config.url == "https://h.test/"  # type: ignore[union-attr]


bodies = st.fixed_dictionaries(
    {}, optional={"message": messages | values, "sessionId": values, "metadata": values | st.just({"callback_url": 1})}
)


@given(bodies | values)
def test_whatever_comes_is_read_or_refused(body: Any) -> None:
    for read in (task_rest.read_task, lambda data: task_rest.read_message(data, "t")):
        try:
            found = read(json.dumps(body).encode())
        except A2AError:
            continue
        assert codec.decode(SendMessageRequest, codec.encode(found.request)) == found.request


@given(st.binary(max_size=80))
def test_bytes_are_read_or_refused(body: bytes) -> None:
    for read in (task_rest.read_task, lambda data: task_rest.read_message(data, "t")):
        with pytest.raises(A2AError):
            read(body)
