"""Content that 0.3 holds differently: data that is no object, and files in its protobuf form."""

from __future__ import annotations

import base64
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from protocol.json_text import is_object
from protocol.scalars import normal_base64

# As in the compatibility layer of the Python SDK, so that its clients unwrap what we wrap and we what they wrap.
WRAPPED: Final = "data_part_compat"
_VALUE: Final = "value"

_TRUE = Raw(b"true")
_FLAG = Raw(b'{"data_part_compat":true}')
_members = msgspec.json.Decoder(dict[str, Raw])
_encoder = msgspec.json.Encoder()

Metadata = Raw | UnsetType


def wrap_data(data: Raw, metadata: Metadata) -> tuple[Raw, Metadata]:
    """(data, metadata) of a 0.3 data part, which holds an object only (0.3 §6.5.3): anything else becomes its value."""
    if is_object(data):
        return data, metadata
    wrapped = Raw(b'{"value":%b}' % bytes(data))
    if metadata is UNSET:
        return wrapped, _FLAG
    return wrapped, Raw(_encoder.encode({**_members.decode(metadata), WRAPPED: _TRUE}))


def unwrap_data(data: Raw, metadata: Metadata) -> tuple[Raw, Metadata]:
    """(data, metadata) of a 1.0 data part: what `wrap_data` was given."""
    if metadata is UNSET or WRAPPED.encode() not in bytes(metadata):
        return data, metadata
    notes, members = _members.decode(metadata), _members.decode(data)
    if bytes(notes.pop(WRAPPED, b"")) != b"true" or members.keys() != {_VALUE}:
        return data, metadata
    return members[_VALUE], Raw(_encoder.encode(notes)) if notes else UNSET


# Peers put the base64 text of a file into the bytes field of the 0.3 protobuf definition, so that its JSON is base64 of
# base64. The SDKs for Python, Go and Java all write it so and cannot read anything else.


def wrap_file(raw: str) -> str:
    """`fileWithBytes` of base64 content."""
    return base64.b64encode(raw.encode()).decode()


def unwrap_file(given: str) -> str:
    """Base64 content of `fileWithBytes`. Bytes that are no base64 text, standard and padded, are the content itself."""
    try:
        inner = base64.b64decode(given).decode("ascii")
    except UnicodeDecodeError:
        return given
    return inner if normal_base64(inner) == inner else given
