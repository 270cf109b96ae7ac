"""The spellings of ProtoJSON that are read besides the canonical one (cases W05, W11, W16, W21, J20)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.codec import decode, encode
from protocol.requests import CancelTaskRequest, SendMessageRequest
from tests.protocol.support import printed, send, send_violations

CANONICAL = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}


def read(data: bytes) -> Any:
    return printed(decode(SendMessageRequest, data))


@pytest.mark.spec("5.7")
@pytest.mark.parametrize(
    "data",
    [
        send('{"text":"hi","colour":"red"}'),
        send('{"kind":"text","text":"hi"}', kind='"message"'),
        send(unknown='{"a":[1e999,{"b":null}]}'),
        b'{"method":"x",' + send()[1:],
        send('{"text":"hi","Text":"no","TEXT":"no"}'),
    ],
)
def test_ignores_unknown_members(data: bytes) -> None:
    assert read(data) == CANONICAL


@pytest.mark.spec("5.5")
@pytest.mark.parametrize(
    "data",
    [
        send(role="1"),
        send(role="1.0"),
        send(role='"ROLE\\u005fUSER"', kind="1"),
        b'{"message":{"message_id":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}',
        b'{"mess\\u0061ge":{"messageId":"m1","role":"ROLE_USER","parts":[{"te\\u0078t":"hi"}]}}',
    ],
)
def test_reads_integer_enums_proto_names_and_escapes(data: bytes) -> None:
    assert read(data) == CANONICAL


def test_null_is_not_there() -> None:
    nulls = dict.fromkeys(("contextId", "taskId", "metadata", "extensions", "referenceTaskIds"), "null")
    part = '{"text":"hi","raw":null,"url":null,"filename":null,"mediaType":null,"metadata":null}'
    data = send(part, **nulls)[:-1] + b',"configuration":null,"metadata":null,"tenant":null}'
    assert read(data) == CANONICAL


def test_metadata_null_is_not_there_in_the_plainest_spelling() -> None:
    assert read(send(metadata="null")) == CANONICAL


def test_defaults_are_not_printed() -> None:
    data = send('{"text":"hi","filename":"","mediaType":""}', contextId='""', extensions="[]")
    assert read(data[:-1] + b',"tenant":""}') == CANONICAL


def test_an_empty_configuration_is_there() -> None:
    data = send()[:-1] + b',"configuration":{"returnImmediately":false,"historyLength":null,"acceptedOutputModes":[]}}'
    assert read(data) == {**CANONICAL, "configuration": {}}


@pytest.mark.parametrize(
    ("data", "field", "description"),
    [
        (send(message_id='"m1"'), "message.messageId", "is given twice, also as message_id"),
        (send(message_id="null"), "message.messageId", "is given twice, also as message_id"),
        (
            send('{"text":"a","mediaType":"x","media_type":"x"}'),
            "message.parts[0].mediaType",
            "is given twice, also as media_type",
        ),
    ],
)
def test_refuses_both_names_of_a_field(data: bytes, field: str, description: str) -> None:
    assert send_violations(data) == [(field, description)]


@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        *(("+/8=", "+/8="), ("-_8", "+/8="), ("+/8", "+/8="), ("-_8=", "+/8="), ("+_8=", "+/8="), ("", "")),
        *(("AA==", "AA=="), ("AA", "AA=="), ("AAA", "AAA="), ("AAAA", "AAAA")),
        # Bits beyond the content are dropped.
        ("+/9=", "+/8="),
    ],
)
def test_base64_leaves_in_standard_padded_form(raw: str, normal: str) -> None:
    for rest in ("", ',"kind":"file"'):
        assert read(send(f'{{"raw":"{raw}"{rest}}}'))["message"]["parts"] == [{"raw": normal}]


@pytest.mark.parametrize("raw", ["A", "AAAAA", "!", "AA A", "AAAA\\n", "AA=A", "AA=", "AAAA=", "=", "é", "AAA\\u0000"])
def test_refuses_what_is_not_base64(raw: str) -> None:
    assert send_violations(send(f'{{"raw":"{raw}"}}')) == [("message.parts[0].raw", "must be base64")]


def test_large_raw_content_is_kept() -> None:
    raw = "QUJD" * 1_000_000
    assert encode(decode(SendMessageRequest, send(f'{{"raw":"{raw}"}}'))) == send(f'{{"raw":"{raw}"}}')


@pytest.mark.parametrize("data", [b"", b"{}", b'{"id":"T2"}', b'{"id":null}', b'{"id":5}'])
def test_values_of_the_path_win(data: bytes) -> None:
    assert decode(CancelTaskRequest, data, {"id": "T1", "elsewhere": "x"}) == CancelTaskRequest(id="T1")


def test_values_of_the_path_go_with_the_body() -> None:
    request = decode(CancelTaskRequest, b'{"tenant":"x","metadata":{"r":1.0}}', {"id": "T1", "tenant": "acme"})
    assert encode(request) == b'{"tenant":"acme","id":"T1","metadata":{"r":1.0}}'
