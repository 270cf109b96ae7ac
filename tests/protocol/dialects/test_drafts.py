"""Drafts as pure translations: what is one, what is none, and that nothing breaks them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import codec
from protocol.dialects.drafts import Draft, read_request
from protocol.dialects.v03 import V0_3
from protocol.dialects.v1 import V1_0
from protocol.errors import A2AError, InvalidParamsError
from protocol.model import SendMessageResponse
from protocol.requests import GetTaskRequest, SendMessageRequest

TAGGED = {"type": "text", "text": "a"}
PLAIN = {"text": "a"}

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["text", "file", "data"])
names = st.sampled_from(["type", "text", "file", "uri", "bytes", "name", "mimeType", "data", "url", "metadata"])
values = st.recursive(scalars, lambda v: st.lists(v, max_size=2) | st.dictionaries(names, v, max_size=3), max_leaves=6)
parts = st.lists(st.dictionaries(names, values, max_size=4) | values, max_size=3) | values
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["ROLE_USER", "user", None, 1]), "parts": parts},
    optional={"messageId": scalars, "taskId": scalars, "contextId": scalars},
)
requests = st.fixed_dictionaries(
    {"message": messages | values}, optional={"taskId": values, "sessionId": values, "metadata": values}
)


def read(request: Any) -> tuple[SendMessageRequest, Any]:
    return read_request(V1_0, SendMessageRequest, json.dumps(request).encode())


def message(*parts: Any, **members: Any) -> dict[str, Any]:
    return {"role": "ROLE_USER", "parts": list(parts)} | members


@pytest.mark.parametrize(
    "request_",
    [
        {"message": message(TAGGED)},
        {"message": message(PLAIN, TAGGED)},
        {"message": message(PLAIN), "sessionId": "s"},
        {"message": message(PLAIN), "taskId": "t"},
        {"message": message(TAGGED, messageId="m")},
        {"message": message(TAGGED, messageId=None)},
        {"message": message({"type": "data", "data": [1.0, {"type": "x"}]})},
    ],
)
def test_a_draft(request_: dict[str, Any]) -> None:
    found, dialect = read(request_)
    assert isinstance(dialect, Draft)
    assert (dialect.version, dialect.base) == ("1.0", V1_0)
    assert found.message.message_id == (request_["message"].get("messageId") or found.message.message_id)
    assert len(found.message.message_id) in (1, 36)


@pytest.mark.parametrize(
    "request_",
    [
        {"message": message(PLAIN)},
        {"message": message({"text": "a", "type": "other"})},
        {"message": message({"text": "a", "type": ["text"]})},
        {"message": message({"data": {"type": "text", "text": "a"}})},
        {"message": message(PLAIN, taskId="t")},
        {"message": message(PLAIN, metadata={"sessionId": "s"})},
        {"message": message(PLAIN), "sessionId": None, "taskId": None},
        {"message": message(PLAIN), "metadata": {"taskId": "t"}},
    ],
)
def test_no_draft(request_: dict[str, Any]) -> None:
    with pytest.raises(InvalidParamsError) as error:
        read(request_)
    assert [violation.field for violation in error.value.violations] == ["message.messageId"]


def test_numbers_and_spelling_of_data_stay() -> None:
    body = b'{"message":{"role":"ROLE_USER","parts":[{"type":"data","data":{"n":1.0,"big":12345678901234567890}}]}}'
    request, _ = read_request(V1_0, SendMessageRequest, body)
    (part,) = request.message.parts
    assert isinstance(part.data, msgspec.Raw)
    assert bytes(part.data) == b'{"n":1.0,"big":12345678901234567890}'


def test_other_requests_have_no_drafts() -> None:
    request, dialect = read_request(V1_0, GetTaskRequest, b'{"id":"t","type":"text","sessionId":"s"}')
    assert (request.id, dialect) == ("t", V1_0)


def test_what_is_no_parts_or_data_of_a_response_stays() -> None:
    body = b'{"task":{"id":"t","metadata":{"parts":[1]},"artifacts":[{"parts":[{"data":{"parts":[{"text":1}]}}]}]}}'
    written = Draft(V1_0).write(SendMessageResponse, body)
    assert json.loads(written) == {
        "task": {
            "id": "t",
            "metadata": {"parts": [1]},
            "artifacts": [{"parts": [{"type": "data", "data": {"parts": [{"text": 1}]}}]}],
        }
    }


@given(requests)
def test_whatever_comes_is_read_or_refused(request_: Any) -> None:
    body = json.dumps(request_).encode()
    for dialect in (V1_0, V0_3):
        try:
            found, _ = read_request(dialect, SendMessageRequest, body)
        except A2AError:
            continue
        assert codec.decode(SendMessageRequest, codec.encode(found)) == found


@given(st.binary(max_size=60).map(lambda b: b'{"message":{"parts":[{"type":"text"}]},"taskId":' + b + b"}"))
def test_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        read_request(V1_0, SendMessageRequest, body)
    except A2AError:
        return
