"""protobuf as the judge: what ProtoJSON prints we read, and what we print it reads, to the same value."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from a2a.types import a2a_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToJson, Parse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol import card, model, protojson, requests
from protocol.codec import decode, encode, fingerprint
from protocol.errors import InvalidParamsError
from protocol.model import Role, Wire
from protocol.scalars import UNSPECIFIED
from protocol.states import TaskState
from tests.protocol.strategies import is_required, json_values, messages, texts

DEFINITION = a2a_pb2.DESCRIPTOR.message_types_by_name


def struct_of(name: str) -> type[Wire]:
    kind: type[Wire] = next(vars(home)[name] for home in (model, requests, card) if name in vars(home))
    return kind


KINDS = {name: struct_of(name) for name in DEFINITION}
# Every other message is a field of one of these.
ROOTS = [
    *("SendMessageRequest", "GetTaskRequest", "ListTasksRequest", "CancelTaskRequest", "SubscribeToTaskRequest"),
    *("GetTaskPushNotificationConfigRequest", "DeleteTaskPushNotificationConfigRequest"),
    *("ListTaskPushNotificationConfigsRequest", "GetExtendedAgentCardRequest"),
    *("TaskPushNotificationConfig", "ListTaskPushNotificationConfigsResponse"),
    *("SendMessageResponse", "StreamResponse", "ListTasksResponse", "AgentCard"),
]

# Building values from the definition takes longer than the checks of hypothesis allow a machine under load.
relaxed = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))


@pytest.mark.spec("5.5")
@pytest.mark.parametrize("name", DEFINITION)
def test_structs_have_the_fields_of_the_definition(name: str) -> None:
    fields = {info.encode_name: info.name for info in msgspec.structs.fields(KINDS[name])}
    assert fields == {field.json_name: field.name for field in DEFINITION[name].fields}


@pytest.mark.spec("5.7")
@pytest.mark.parametrize("name", DEFINITION)
def test_structs_require_what_the_definition_requires(name: str) -> None:
    required = {info.name for info in msgspec.structs.fields(KINDS[name]) if info.required}
    defined = {field.name for field in DEFINITION[name].fields if is_required(field)}
    # Printed although the definition does not ask for it: an empty page.
    also = {"configs"} if name == "ListTaskPushNotificationConfigsResponse" else set()
    assert required == defined | also


@pytest.mark.parametrize("name", DEFINITION)
def test_structs_have_the_choices_of_the_definition(name: str) -> None:
    choices = [tuple(field.name for field in oneof.fields) for oneof in DEFINITION[name].oneofs]
    kind = KINDS[name]
    assert [one for one in choices if len(one) > 1] == [one for one in (kind.ONE_OF, kind.AT_MOST_ONE_OF) if one]


@pytest.mark.spec("5.5")
def test_enums_have_the_names_and_numbers_of_the_definition() -> None:
    assert dict(a2a_pb2.TaskState.items()) == {state.value: state.number for state in TaskState}
    assert dict(a2a_pb2.Role.items()) == {
        name: number for number, name in enumerate([UNSPECIFIED[Role], *(role.value for role in Role)])
    }


def same_json(one: bytes, other: bytes) -> bool:
    return bool(json.loads(one) == json.loads(other))


@pytest.mark.spec("5.5")
@pytest.mark.parametrize("name", ROOTS)
def test_reads_and_prints_what_protobuf_does(name: str) -> None:
    kind, descriptor = KINDS[name], DEFINITION[name]

    @relaxed
    @given(messages(descriptor))
    def check(message: Any) -> None:
        text = MessageToJson(message, indent=None, ensure_ascii=False)
        struct = decode(kind, text.encode())
        ours = encode(struct)
        assert Parse(ours, type(message)()) == message
        assert encode(decode(kind, ours)) == ours
        # Escapes, line breaks, proto names, integer enums, defaults spelled out.
        ascii_text = MessageToJson(message, indent=2, preserving_proto_field_name=True, use_integers_for_enums=True)
        assert same_json(encode(decode(kind, ascii_text.encode())), ours)
        full = MessageToJson(message, always_print_fields_with_no_presence=True)
        assert same_json(encode(decode(kind, full.encode())), ours)

    check()


@pytest.mark.parametrize(
    "name", ["SendMessageRequest", "GetTaskRequest", "CancelTaskRequest", "SubscribeToTaskRequest"]
)
def test_the_fast_reading_equals_the_tolerant_one(name: str) -> None:
    kind = KINDS[name]

    @relaxed
    @given(messages(DEFINITION[name]))
    def check(message: Any) -> None:
        data = MessageToJson(message, indent=None).encode()
        fast, tolerant = decode(kind, data), protojson.read(kind, data)
        assert encode(fast) == encode(tolerant)
        if isinstance(fast, requests.SendMessageRequest) and isinstance(tolerant, requests.SendMessageRequest):
            assert fingerprint(fast) == fingerprint(tolerant)

    check()


@pytest.mark.spec("5.7")
@pytest.mark.parametrize("name", ["SendMessageRequest", "StreamResponse", "ListTasksRequest", "AgentCard"])
def test_reads_any_spelling(name: str) -> None:
    kind, descriptor = KINDS[name], DEFINITION[name]

    @relaxed
    @given(st.data())
    def check(data: st.DataObject) -> None:
        message = data.draw(messages(descriptor))
        canonical = json.loads(MessageToJson(message))
        spelled = json.dumps(respell(data.draw, descriptor, canonical)).encode()
        assert same_json(encode(decode(kind, spelled)), encode(decode(kind, MessageToJson(message).encode())))

    check()


def respell(draw: Any, descriptor: Descriptor, value: dict[str, Any]) -> dict[str, Any]:
    """The same message in another spelling that ProtoJSON allows."""
    spelled: dict[str, Any] = {}
    for field in descriptor.fields:
        name = draw(st.sampled_from([field.name, field.json_name]))
        if field.json_name in value:
            spelled[name] = respell_field(draw, field, value[field.json_name])
        elif draw(st.booleans()) and (field.message_type is None or field.message_type.name != "Value"):
            spelled[name] = None
    unknown = draw(st.dictionaries(texts, json_values, max_size=2))
    known = {name for field in descriptor.fields for name in (field.name, field.json_name)}
    return {name: inner for name, inner in unknown.items() if name not in known} | spelled


def respell_field(draw: Any, field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {key: respell_value(draw, inner, one) for key, one in value.items()}
    if field.is_repeated:
        return [respell_value(draw, field, one) for one in value]
    return respell_value(draw, field, value)


def respell_value(draw: Any, field: Any, value: Any) -> Any:
    match field.type:
        case FieldDescriptor.TYPE_MESSAGE if field.message_type.file.name.startswith("google/"):
            return value
        case FieldDescriptor.TYPE_MESSAGE:
            return respell(draw, field.message_type, value)
        case FieldDescriptor.TYPE_ENUM:
            number = field.enum_type.values_by_name[value].number
            return draw(st.sampled_from([value, number, float(number)]))
        case FieldDescriptor.TYPE_INT32:
            return draw(st.sampled_from([value, str(value), float(value)]))
        case FieldDescriptor.TYPE_BYTES:
            content = base64.b64decode(value)
            url_safe = base64.urlsafe_b64encode(content).decode()
            return draw(st.sampled_from([value, value.rstrip("="), url_safe, url_safe.rstrip("=")]))
    return value


@pytest.mark.spec("5.7")
@relaxed
@given(st.data())
def test_never_fails_in_another_way(data: st.DataObject) -> None:
    """Whatever JSON comes, it is read or refused with violations, and what is read protobuf reads too."""
    name = data.draw(st.sampled_from(ROOTS))
    value = json.loads(MessageToJson(data.draw(messages(DEFINITION[name]))))
    damaged = json.dumps({key: damage(data.draw, inner) for key, inner in value.items()}).encode()
    try:
        struct = decode(KINDS[name], damaged)
    except InvalidParamsError:
        return
    Parse(encode(struct), getattr(a2a_pb2, name)())
    Parse(damaged, getattr(a2a_pb2, name)(), ignore_unknown_fields=True)


def damage(draw: Any, value: Any) -> Any:
    """The same JSON with something else in a few places."""
    if draw(st.integers(0, 9)) == 0:
        return draw(json_values)
    if isinstance(value, list):
        return [damage(draw, inner) for inner in value]
    if isinstance(value, dict):
        return {key: damage(draw, inner) for key, inner in value.items() if draw(st.integers(0, 9))}
    return value
