"""A field that is given twice (case J20): two readers could take it differently, so it is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import Decoder

from protocol.codec import decode
from protocol.json_text import quotes, repeated_members
from protocol.model import Wire
from protocol.requests import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from protocol.rules import PLAIN
from tests.protocol.support import send, violations

pytestmark = pytest.mark.spec("5.1")

TWICE = "is given more than once"
MEMBERS: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
CONFIGURATION = b',"configuration":{"historyLength":1,"historyLength":1}}'


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        (SendMessageRequest, send(messageId='"a","messageId":"b"'), "message.messageId"),
        (SendMessageRequest, send(role='"ROLE_USER","role":"ROLE_USER"'), "message.role"),
        (SendMessageRequest, send(parts='[{"text":"a"}],"parts":[{"text":"a"}]'), "message.parts"),
        (SendMessageRequest, send('{"text":"a","text":"b"}'), "message.parts[0].text"),
        (SendMessageRequest, send('{"text":"a"},{"data":1,"data":1}'), "message.parts[1].data"),
        (SendMessageRequest, send('{"text":"a","metadata":{},"metadata":{}}'), "message.parts[0].metadata"),
        (SendMessageRequest, send(contextId='"","contextId":""'), "message.contextId"),
        (SendMessageRequest, send(contextId='"c","context\\u0049d":"c"'), "message.contextId"),
        (SendMessageRequest, send()[:-1] + b',"message":{}}', "message"),
        (SendMessageRequest, send()[:-1] + b',"tenant":"a","tenant":"a"}', "tenant"),
        (SendMessageRequest, send()[:-1] + CONFIGURATION, "configuration.historyLength"),
        (GetTaskRequest, b'{"id":"a","id":"a"}', "id"),
        (GetTaskRequest, b'{"id":"a","historyLength":1,"historyLength":2}', "historyLength"),
        (ListTasksRequest, b'{"pageSize":1,"pageSize":1}', "pageSize"),
        (CancelTaskRequest, b'{"id":"a","id":"b"}', "id"),
        (SubscribeToTaskRequest, b'{"id":"a","id":"b"}', "id"),
        (GetExtendedAgentCardRequest, b'{"tenant":"","tenant":""}', "tenant"),
    ],
)
def test_is_refused(kind: type[Wire], data: bytes, field: str) -> None:
    assert (field, TWICE) in violations(kind, data)


@pytest.mark.parametrize(
    "data",
    [
        send('{"data":{"a":1,"a":2}}'),
        send('{"text":"a","metadata":{"k":1,"k":2}}'),
        send(metadata='{"messageId":1,"messageId":2}'),
        send()[:-1] + b',"colour":1,"colour":2}',
        send('{"text":"\\"text\\":\\"text\\""}'),
        send('{"text":"\\\\"},{"text":"\\\\\\""}'),
        send('{"text":"a","kind":1,"kind":2}'),
    ],
)
def test_what_is_passed_on_or_ignored_is_not_looked_at(data: bytes) -> None:
    decode(SendMessageRequest, data)


def test_a_path_does_not_hide_it() -> None:
    assert violations(CancelTaskRequest, b'{"id":"a","id":"b"}', {"id": "path"}) == [("id", TWICE)]


@pytest.mark.parametrize(
    "data",
    [
        send(),
        send('{"text":"a \\"quoted\\" \\\\ text\\n","mediaType":"text/plain","filename":"a"}', contextId='"c"'),
        send('{"text":"a"},{"raw":"AAA="},{"url":"u"},{"data":{"a":["b"]},"metadata":{"c":"d\\"e"}}', taskId='"t"'),
        send(extensions='["a","b"]', metadata='{"a":"b"}')[:-1] + b',"metadata":{"a":"b"},"tenant":"t"}',
        send()[:-1] + b',"configuration":{"historyLength":0,"returnImmediately":true,"acceptedOutputModes":["a","b"]}}',
        send()[:-1] + b',"configuration":{}}',
    ],
)
def test_plain_requests_need_no_second_look(data: bytes) -> None:
    assert PLAIN[SendMessageRequest](Decoder(SendMessageRequest).decode(data), data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.booleans(), st.data())
def test_every_repetition_is_found_and_nothing_else(value: dict[str, Any], escaped: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    if b"\xed" in text:
        return
    try:
        members = MEMBERS.decode(text)
    except ValueError:  # lone surrogates
        return
    assert repeated_members(text, members) == []
    if value:
        name = data.draw(st.sampled_from(sorted(value)))
        again = json.dumps({name: data.draw(JSON)}).encode()
        longer = text[:-1] + b", " + again[1:]
        try:
            members = MEMBERS.decode(longer)
        except ValueError:
            return
        assert repeated_members(longer, members) == [name]


@pytest.mark.parametrize(
    ("text", "count"),
    [('"a"', 2), (r'"\""', 2), (r'"\\"', 2), (r'"\\\""', 2), (r'["a\\","\\\\"]', 4), (r'"\u0022"', 2), ("5", 0)],
)
def test_quotes(text: str, count: int) -> None:
    assert quotes(text.encode()) == count
