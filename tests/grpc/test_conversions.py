"""protobuf ↔ JSON by hand, with json_format as the judge."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb_v03
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings

from a2a_host.bindings.grpc import service_v03, service_v1
from a2a_host.bindings.grpc.convert_in import json_bytes
from a2a_host.bindings.grpc.convert_out import message_of
from protocol.codec import decode
from protocol.errors import InvalidParamsError
from protocol.requests import ListTasksRequest, SendMessageRequest
from tests.protocol.strategies import messages

relaxed = settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
MESSAGES = [
    *(rpc.request for rpc in service_v1.METHODS.values()),
    *(rpc.response for rpc in service_v1.METHODS.values() if rpc.response.DESCRIPTOR.fields),
    *(rpc.request for rpc in service_v03.METHODS.values() if rpc.request.DESCRIPTOR.fields),
    *(rpc.response for rpc in service_v03.METHODS.values() if rpc.response.DESCRIPTOR.fields),
]
KINDS = {kind.DESCRIPTOR.full_name: kind for kind in MESSAGES}


@pytest.mark.spec("10.1")
@pytest.mark.parametrize("name", KINDS)
def test_json_is_what_protobuf_prints_and_reads_back_to_the_same_message(name: str) -> None:
    @relaxed
    @given(messages(KINDS[name].DESCRIPTOR))
    def check(message: Message) -> None:
        written = json_bytes(message)
        assert json.loads(written) == json_format.MessageToDict(message)
        assert message_of(KINDS[name], msgspec.json.decode(written)) == message

    check()


@pytest.mark.parametrize(
    ("text", "seconds", "nanos"),
    [
        ("2026-11-29T10:20:30.123Z", 1795947630, 123_000_000),
        ("2026-11-29T10:20:30Z", 1795947630, 0),
        ("1969-12-31T23:59:59.999Z", -1, 999_000_000),
        ("0001-01-01T00:00:00.000Z", -62135596800, 0),
        ("9999-12-31T23:59:59.999999999Z", 253402300799, 999_999_999),
    ],
)
def test_moments(text: str, seconds: int, nanos: int) -> None:
    status = message_of(pb.TaskStatus, {"timestamp": text})
    assert status.timestamp == Timestamp(seconds=seconds, nanos=nanos)


def test_empty_is_not_absent() -> None:
    message = message_of(
        pb.Message, {"metadata": {}, "parts": [{"data": {}}, {"data": []}, {"data": None}, {"text": ""}]}
    )
    assert message.HasField("metadata")
    assert [part.WhichOneof("content") for part in message.parts] == ["data", "data", "data", "text"]
    kinds = [part.data.WhichOneof("kind") for part in message.parts[:3]]
    assert kinds == ["struct_value", "list_value", "null_value"]
    assert json.loads(json_bytes(message)) == {
        "metadata": {},
        "parts": [{"data": {}}, {"data": []}, {"data": None}, {"text": ""}],
    }


def test_members_without_a_field_are_left_out() -> None:
    assert message_of(pb.Task, {"id": "t", "later": 1}) == pb.Task(id="t")


def test_numbers_are_doubles() -> None:
    given = {"a": 1, "b": 2**53 + 1, "c": 1.5, "d": -0.0, "e": 1e300}
    part = message_of(pb.Part, {"data": given})
    assert part.data.struct_value.fields["b"].number_value == 2.0**53
    assert json_bytes(part) == b'{"data":{"a":1,"b":9007199254740992,"c":1.5,"d":-0.0,"e":1e300}}'


@pytest.mark.spec("10.6")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused_where_they_are(number: float) -> None:
    bad = Struct(fields={"x": Value(number_value=number)})
    request = pb.SendMessageRequest(
        message=pb.Message(
            message_id="m", role=pb.ROLE_USER, parts=[pb.Part(data=Value(struct_value=bad))], metadata=bad
        ),
        metadata=bad,
    )
    with pytest.raises(InvalidParamsError) as refused:
        decode(SendMessageRequest, json_bytes(request))
    found = [(one.field, one.description) for one in refused.value.violations]
    fault = "holds a number out of range"
    assert found == [("message.parts[0].data", fault), ("message.metadata", fault), ("metadata", fault)]


@pytest.mark.parametrize(
    ("moment", "shown"),
    [(Timestamp(seconds=10**12), "1000000000000.000000000 s"), (Timestamp(nanos=-1), "0.-00000001 s")],
)
def test_moments_out_of_range_are_refused(moment: Timestamp, shown: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        decode(ListTasksRequest, json_bytes(pb.ListTasksRequest(status_timestamp_after=moment)))
    (violation,) = refused.value.violations
    assert violation.field == "statusTimestampAfter"
    assert violation.description == f'must be a timestamp such as 2025-10-28T10:30:00.000Z, got "{shown}"'


def test_unknown_numbers_of_enums_are_named() -> None:
    request = pb.SendMessageRequest(message=pb.Message(message_id="m", parts=[pb.Part(text="t")]))
    request.message.role = 7  # type: ignore[assignment]
    with pytest.raises(InvalidParamsError) as refused:
        decode(SendMessageRequest, json_bytes(request))
    found = [(one.field, one.description) for one in refused.value.violations]
    assert found == [("message.role", "must be one of ROLE_USER, ROLE_AGENT, got 7")]


def test_the_card_of_0_3_names_security_as_its_definition_does() -> None:
    card: dict[str, Any] = {
        "name": "a",
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "Bearer"},
        },
        "security": [{"key": [], "bearer": ["read"]}],
        "skills": [{"id": "s", "name": "S", "description": "", "tags": ["t"], "security": [{"key": []}]}],
    }
    made = message_of(pb_v03.AgentCard, service_v03.shape_card(card))
    assert made.security_schemes["key"].api_key_security_scheme.location == "header"
    assert made.security_schemes["bearer"].http_auth_security_scheme.scheme == "Bearer"
    assert list(made.security[0].schemes["bearer"].list) == ["read"]
    assert list(made.security[0].schemes["key"].list) == []
    assert list(made.skills[0].security[0].schemes) == ["key"]
