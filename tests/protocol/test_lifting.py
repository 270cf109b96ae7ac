"""Big base64 is left in the bytes of the request, and everything else is read as ever."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from protocol import codec
from protocol.errors import A2AError, InvalidParamsError, ParseError
from protocol.lifting import read_lifted
from protocol.requests import SendMessageRequest
from protocol.stored_part import Held

LIMIT = 1000
LONG = b64encode(bytes(range(256)) * 8).decode()


def read(body: bytes) -> SendMessageRequest:
    """A request as the host reads it."""
    return read_lifted(body, LIMIT, lambda text: codec.decode(SendMessageRequest, text), lambda request: request)


def request(*parts: object, **members: object) -> bytes:
    """A request in JSON."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": parts} | members
    return json.dumps({"message": message}).encode()


def test_a_big_raw_part_is_a_view_of_the_request() -> None:
    body = request({"text": "a"}, {"raw": LONG, "filename": "f"}, {"raw": "AAAA"}, {"raw": LONG[:2000]})
    parts = read(body).message.parts
    held = [part.raw for part in parts if isinstance(part.raw, Held)]
    assert [bytes(one.content).decode() for one in held] == [LONG, LONG[:2000]]
    assert held[0].content.obj is body  # type: ignore[union-attr]
    assert [one.base64 for one in held] == [LONG, LONG[:2000]]
    assert codec.encode(read(body)) == codec.encode(codec.decode(SendMessageRequest, body))


@pytest.mark.parametrize(
    "body",
    [
        request({"text": LONG}),
        request({"data": {"raw": LONG}}),
        request({"raw": "AAAA"}, metadata={LONG: LONG}),
        request({"raw": LONG}, metadata={"k": LONG}),
        request({"text": f'"raw":"{LONG}"'}),
        request({"raw": LONG}).replace(b"/", b"\\/"),
        b'{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":[' + b"1," * 5000 + b"1]}]}}",
    ],
)
def test_what_is_elsewhere_is_read_as_ever(body: bytes) -> None:
    assert codec.encode(read(body)) == codec.encode(codec.decode(SendMessageRequest, body))


@pytest.mark.parametrize(
    "body",
    [
        request({"raw": "AAAA"}, messageId=LONG),
        request({"raw": LONG}, role="ROLE_AGENT"),
        request({"raw": LONG, "text": "two"}),
        request({"raw": "?" * 4000}),
        request({"raw": LONG})[:-10],
        b'{"message":"' + LONG.encode() + b'"}',
        b'"' + LONG.encode(),
    ],
)
def test_errors_are_those_of_the_request_as_it_is(body: bytes) -> None:
    with pytest.raises(A2AError) as expected:
        codec.decode(SendMessageRequest, body)
    with pytest.raises(type(expected.value)) as raised:
        read(body)
    assert isinstance(raised.value, (InvalidParamsError, ParseError))
    assert getattr(raised.value, "violations", None) == getattr(expected.value, "violations", None)


def test_what_is_no_base64_is_told_when_it_is_read_again() -> None:
    body = request({"raw": LONG[:-1] + "?"})
    (part,) = read(body).message.parts
    assert isinstance(part.raw, Held)
    assert part.raw.reread is not None
    with pytest.raises(InvalidParamsError) as refusal:
        part.raw.reread()
    assert [violation.field for violation in refusal.value.violations] == ["message.parts[0].raw"]
