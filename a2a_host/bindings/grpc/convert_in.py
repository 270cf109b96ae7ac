"""protobuf messages as ProtoJSON: requests are read by the same reader as JSON, so every rule and field name is one.

Works on any message by its descriptor; json_format costs ten times as much. Only what is present is written.
"""

from __future__ import annotations

import functools
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Raw

from protocol.protobuf import Json, struct_json, value_json

Writer = Callable[[Any], Json]

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


def _unfit() -> Json:
    return _OUT_OF_RANGE


_MESSAGES: dict[str, Writer] = {
    "google.protobuf.Struct": lambda struct: struct_json(struct, _unfit),
    "google.protobuf.Value": lambda value: value_json(value, _unfit),
    "google.protobuf.Timestamp": _timestamp,
}
