"""Short ways to say what a request was read as, or what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from protocol.codec import decode, decode_query, encode
from protocol.errors import InvalidParamsError
from protocol.model import Wire
from protocol.requests import SendMessageRequest


def send(part: str = '{"text":"hi"}', **members: str) -> bytes:
    """SendMessage parameters as JSON, with members of the message replaced by other JSON."""
    message = {"messageId": '"m1"', "role": '"ROLE_USER"', "parts": f"[{part}]", **members}
    return ('{"message":{' + ",".join(f'"{name}":{value}' for name, value in message.items()) + "}}").encode()


def printed(value: Wire) -> Any:
    """What goes out for a struct."""
    return json.loads(encode(value))


def violations(kind: type[Wire], data: bytes, path: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """(field, description) of each, from a request that must be refused."""
    with pytest.raises(InvalidParamsError) as refused:
        decode(kind, data, path)
    assert refused.value.message == "Invalid parameters"
    return [(one.field, one.description) for one in refused.value.violations]


def send_violations(data: bytes) -> list[tuple[str, str]]:
    """The same for SendMessage."""
    return violations(SendMessageRequest, data)


def query_violations(
    kind: type[Wire], pairs: list[tuple[str, str]], path: dict[str, str] | None = None
) -> list[tuple[str, str]]:
    """The same for a query string."""
    with pytest.raises(InvalidParamsError) as refused:
        decode_query(kind, pairs, path or {})
    return [(one.field, one.description) for one in refused.value.violations]
