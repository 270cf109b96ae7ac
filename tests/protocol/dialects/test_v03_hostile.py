"""Any JSON, and any bytes, in the place of a request of 0.3: a request or a refusal, and the same one on every way."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json

from protocol import protojson
from protocol.dialects.v03 import V0_3, V0_3_PROTO, V0_3_WRAPPED, http_form
from protocol.dialects.v03.dialect import READINGS
from protocol.errors import InvalidParamsError, ParseError
from protocol.model import Wire
from tests.protocol.strategies import json_values

SEND: dict[str, Any] = {
    "message": {
        "kind": "message",
        "messageId": "m",
        "role": "user",
        "parts": [
            {"kind": "text", "text": "hi", "metadata": {"a": 1}},
            {"kind": "data", "data": {"b": [True]}},
            {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "a/b", "name": "n"}},
        ],
        "contextId": "c",
        "taskId": "t",
        "extensions": ["e"],
        "referenceTaskIds": ["r"],
        "metadata": {},
    },
    "configuration": {
        "blocking": True,
        "historyLength": 1,
        "acceptedOutputModes": ["a/b"],
        "pushNotificationConfig": {"url": "u", "authentication": {"schemes": ["s"], "credentials": "c"}},
    },
    "metadata": {"z": None},
}
PROTO: dict[str, Any] = {
    "message": {
        "messageId": "m",
        "role": "ROLE_USER",
        "content": [
            {"text": "hi"},
            {"data": {"data": {"b": 1}}},
            {"file": {"fileWithBytes": "YUdrPQ==", "mimeType": "a/b", "name": "n"}},
        ],
        "metadata": {},
    },
    "configuration": {"blocking": True, "pushNotification": {"url": "u"}},
}
CONFIG: dict[str, Any] = {
    "parent": "tasks/t",
    "configId": "c",
    "config": {"name": "n", "pushNotificationConfig": {"url": "u", "authentication": {"schemes": ["s"]}}},
}
odd_values = json_values | st.sampled_from(["", "\0", "user", -1, 2**40, 1.5, {}, [], "text", "file", True])


def places(value: Any) -> list[tuple[Any, ...]]:
    """The paths of all values inside of one."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(key, *rest) for key, inner in pairs for rest in [(), *places(inner)]]


@st.composite
def bent(draw: st.DrawFn, original: dict[str, Any]) -> bytes:
    """A request in which some values were replaced, taken out, or given another name."""
    request = copy.deepcopy(original)
    for path in draw(st.lists(st.sampled_from(places(original)), max_size=3)):
        holder: Any = request
        for key in path[:-1]:
            holder = holder[key] if isinstance(holder, dict) and key in holder else {}
        if not isinstance(holder, dict) or path[-1] not in holder:
            continue
        match draw(st.sampled_from(["replace", "remove", "rename"])):
            case "replace":
                holder[path[-1]] = draw(odd_values)
            case "remove":
                del holder[path[-1]]
            case "rename":
                holder[draw(st.text(max_size=6))] = holder.pop(path[-1])
    return json.encode(request)


def outcome(read: Any) -> Any:
    """The request, or the fields that are wrong."""
    try:
        return read()
    except InvalidParamsError as error:
        return [one.field for one in error.violations]
    except ParseError as error:
        return str(error)


@given(st.one_of(bent(SEND), bent(PROTO), bent(CONFIG), json_values.map(json.encode), st.binary(max_size=40)))
@settings(max_examples=300, deadline=None)
def test_every_form_reads_or_refuses(body: bytes) -> None:
    for kind in READINGS:
        for dialect in (V0_3, V0_3_WRAPPED, V0_3_PROTO, http_form(body)):
            found = outcome(lambda dialect=dialect, kind=kind: dialect.read(kind, body, {"taskId": "t"}))  # type: ignore[misc]
            assert isinstance(found, kind | list | str)


@given(bent({name: value for name, value in SEND.items() if name != "configuration"}))
@settings(max_examples=300, deadline=None)
def test_the_quick_reading_is_the_tolerant_one(body: bytes) -> None:
    for reading in READINGS.values():
        plain = outcome(lambda reading=reading: reading._plain(body))  # type: ignore[misc]
        if plain is not None:
            assert plain == outcome(
                lambda reading=reading: protojson.read(reading.params, body, check=reading.check)  # type: ignore[misc]
            )


@pytest.mark.parametrize("kind", list(READINGS))
def test_nothing_at_all_is_an_empty_request(kind: type[Wire]) -> None:
    found = [outcome(lambda body=body: V0_3.read(kind, body)) for body in (None, b"", b"null", b"{}")]  # type: ignore[misc]
    assert found[0] == found[1] == found[2] == found[3]
