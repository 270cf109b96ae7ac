"""Hypothesis strategies for A2A messages, made from the protobuf definition itself."""

from __future__ import annotations

import functools
from typing import Any, cast

from google.api import field_behavior_pb2
from google.protobuf import struct_pb2, timestamp_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from protocol.model import KEY_MAX

# Of these, a message without any is refused by us.
EXACTLY_ONE = {"Part", "SendMessageResponse", "StreamResponse"}
KEY_NAMES = {"id", "tenant", "message_id", "context_id", "task_id", "artifact_id", "reference_task_ids"}
LIMITS = {("ListTasksRequest", "page_size"): (1, 100)}
YEAR_1, YEAR_10000 = -62_135_596_800, 253_402_300_800

texts = st.text(max_size=12)
keys = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12) | st.just(
    "é" * KEY_MAX
)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)


@st.composite
def timestamps(draw: st.DrawFn, step: int = 1) -> timestamp_pb2.Timestamp:
    """`step` is the number of nanoseconds that are told apart."""
    nanos = draw(st.sampled_from([0, 1, 1_000, 123_000_000, 123_456_789]) | st.integers(0, 999_999_999))
    return timestamp_pb2.Timestamp(seconds=draw(st.integers(YEAR_1, YEAR_10000 - 1)), nanos=nanos // step * step)


@functools.cache
def messages(descriptor: Descriptor) -> st.SearchStrategy[Message]:
    """Valid messages of a kind: required fields are set, one member of each oneof."""

    @st.composite
    def build(draw: st.DrawFn) -> Message:
        message = GetMessageClass(descriptor)()
        for field in _chosen(draw, descriptor):
            value = draw(_values(field))
            if field.message_type is not None and not field.is_repeated:
                getattr(message, field.name).CopyFrom(value)
            elif _is_map(field):
                for key, inner in value.items():
                    _put(getattr(message, field.name), key, inner)
            elif field.is_repeated:
                getattr(message, field.name).extend(value)
            else:
                setattr(message, field.name, value)
        return _consistent(message)

    return build()


def _chosen(draw: st.DrawFn, descriptor: Descriptor) -> list[FieldDescriptor]:
    """The fields to set."""
    fields = [field for field in descriptor.fields if field.containing_oneof is None or _optional(field)]
    chosen = [field for field in fields if is_required(field) or draw(st.booleans())]
    for oneof in descriptor.oneofs:
        if len(oneof.fields) > 1 and (descriptor.name in EXACTLY_ONE or draw(st.booleans())):
            chosen.append(draw(st.sampled_from(list(oneof.fields))))
    return chosen


def _values(field: Any) -> st.SearchStrategy[Any]:
    if _is_map(field):
        return st.dictionaries(texts, _single(field.message_type.fields_by_name["value"]), max_size=2)
    if field.is_repeated:
        return st.lists(_single(field), min_size=int(is_required(field)), max_size=2)
    return _single(field)


def _single(field: Any) -> st.SearchStrategy[Any]:
    match field.type:
        case FieldDescriptor.TYPE_MESSAGE if field.name == "status_timestamp_after":
            # Read into a datetime.
            return timestamps(1000)
        case FieldDescriptor.TYPE_MESSAGE:
            return _message(field.message_type)
        case FieldDescriptor.TYPE_ENUM:
            return st.sampled_from([value.number for value in field.enum_type.values if value.number])
        case FieldDescriptor.TYPE_STRING:
            if field.name in KEY_NAMES:
                return keys
            return st.text(min_size=1, max_size=12) if is_required(field) else texts
        case FieldDescriptor.TYPE_BYTES:
            return st.binary(max_size=8)
        case FieldDescriptor.TYPE_BOOL if field.name == "include_artifacts":
            # Read into a plain bool: false and absent ask for the same.
            return st.just(True)
        case FieldDescriptor.TYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.TYPE_INT32:
            return st.integers(*LIMITS.get((field.containing_type.name, field.name), (0, 2**31 - 1)))
    raise AssertionError(field.full_name)


def _message(descriptor: Descriptor) -> st.SearchStrategy[Any]:
    match descriptor.full_name:
        case "google.protobuf.Struct":
            return json_objects.map(lambda value: ParseDict(value, struct_pb2.Struct()))
        case "google.protobuf.Value":
            return json_values.map(lambda value: ParseDict(cast(Any, value), struct_pb2.Value()))
        case "google.protobuf.Timestamp":
            return timestamps()
    return st.deferred(lambda: messages(descriptor))


def _consistent(message: Any) -> Message:
    """What the rules between fields ask for."""
    if message.DESCRIPTOR.full_name == "lf.a2a.v1.SendMessageRequest":
        message.message.role = 1
        if message.configuration.HasField("task_push_notification_config"):
            message.configuration.task_push_notification_config.task_id = ""
    return message  # type: ignore[no-any-return]


def _put(container: Any, key: str, value: Any) -> None:
    if isinstance(value, Message):
        container[key].CopyFrom(value)
    else:
        container[key] = value


def is_required(field: FieldDescriptor) -> bool:
    """Whether the definition says REQUIRED."""
    return field_behavior_pb2.REQUIRED in field.GetOptions().Extensions[field_behavior_pb2.field_behavior]


def _optional(field: FieldDescriptor) -> bool:
    """A field with the word `optional` is alone in a oneof that protobuf made up."""
    return field.containing_oneof is not None and len(field.containing_oneof.fields) == 1


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
