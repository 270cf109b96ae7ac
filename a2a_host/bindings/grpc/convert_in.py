"""protobuf messages as ProtoJSON: requests are read by the same reader as JSON, so every rule and field name is one.

Works on any message by its descriptor; json_format costs ten times as much. Only what is present is written.
"""

from __future__ import annotations

import functools
import math
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Raw

Json = Any
"""What msgspec writes as JSON."""

Writer = Callable[[Any], Json]

EXACT = 2**53
"""Integers up to here are exact as doubles; larger ones stay in the form of a double."""

_OUT_OF_RANGE = Raw(b"1e999")
_encode = msgspec.json.encode


def json_bytes(message: Message) -> bytes:
    """ProtoJSON of a message. What JSON cannot hold (NaN, infinity) becomes a number that every reader refuses."""
    return _encode(members_of(message))


def members_of(message: Message) -> dict[str, Json]:
    """The same as a dict by JSON names."""
    members: dict[str, Json] = _writer_of(message.DESCRIPTOR)(message)
    return members


@functools.cache
def _writer_of(descriptor: Descriptor) -> Writer:
    """What writes a message of a kind."""
    if descriptor.full_name in _MESSAGES:
        return _MESSAGES[descriptor.full_name]
    # A message that holds others of its kind would be asked for without end; A2A has none beside Struct.
    writers = {field.number: (field.json_name, _field_writer(field)) for field in descriptor.fields}

    def write(message: Message) -> dict[str, Json]:
        members = {}
        for field, value in message.ListFields():
            name, write_field = writers[field.number]
            members[name] = value if write_field is None else write_field(value)
        return members

    return write


def _field_writer(field: FieldDescriptor) -> Writer | None:
    """None for what is JSON as it is."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        write_value = _single_writer(field.message_type.fields_by_name["value"]) or _same
        return lambda entries: {key: write_value(value) for key, value in entries.items()}
    write = _single_writer(field)
    if not field.is_repeated:
        return write
    return (lambda items: [write(item) for item in items]) if write else list


def _single_writer(field: FieldDescriptor) -> Writer | None:
    if field.message_type is not None:
        return _writer_of(field.message_type)
    if field.enum_type is not None:
        return _enum_writer(field.enum_type)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda content: b64encode(content).decode()
    return None


def _same(value: Any) -> Json:
    return value


def _enum_writer(enum: EnumDescriptor) -> Writer:
    # A number that nobody knows stays one, for the reader to name in its refusal.
    names = {value.number: value.name for value in enum.values}
    return lambda number: names.get(number, number)


def _timestamp(moment: Timestamp) -> str:
    try:
        return moment.ToJsonString()
    except ValueError:  # Outside of the years 1 to 9999, or nanoseconds that are none: for the reader to refuse.
        return f"{moment.seconds}.{moment.nanos:09} s"


def struct_members(struct: Struct) -> dict[str, Json]:
    """A Struct. A protobuf map has no order of its own; sorted, the same Struct is the same text."""
    return {name: _value(value) for name, value in sorted(struct.fields.items())}


def _value(value: Value) -> Json:
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            return _number(value.number_value)
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return struct_members(value.struct_value)
        case "list_value":
            return [_value(item) for item in value.list_value.values]
        case _:
            return None


def _number(number: float) -> int | float | Raw:
    """Whole numbers have no `.0`, except for -0.0."""
    if not math.isfinite(number):
        return _OUT_OF_RANGE
    whole = number.is_integer() and abs(number) <= EXACT and (number != 0 or math.copysign(1.0, number) > 0)
    return int(number) if whole else number


_MESSAGES: dict[str, Writer] = {
    "google.protobuf.Struct": struct_members,
    "google.protobuf.Value": _value,
    "google.protobuf.Timestamp": _timestamp,
}
