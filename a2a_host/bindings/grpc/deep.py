"""JSON that is nested deeper than protobuf can carry, in a form that it can.

A reader of protobuf takes 100 messages inside each other, and an object in an object is three of them. Data that is
too deep comes as its JSON text in bytes, with a media type that says so; such members of metadata as their JSON texts,
below a member of the host's. Nothing is lost, and everything else of an answer comes as it is.
"""

from __future__ import annotations

from base64 import b64encode

import msgspec
from msgspec import Raw

from protocol import codec
from protocol.json_text import too_deep
from protocol.model import Part, Wire

LEVELS = 30
"""Of objects, which fit at any place of an answer."""
AS_TEXT = "urn:a2a-host:json"
"""The member of metadata that holds others of it as text."""
JSON_TYPE = "application/json"

_members = msgspec.json.Decoder(dict[str, Raw])


def flattened(kind: type[Wire], body: bytes) -> bytes:
    """JSON of a `kind` in which nothing is deeper than `LEVELS`."""
    value = codec.load(kind, body)
    _flatten(value)
    return codec.encode(value)


def _flatten(value: object) -> None:
    if isinstance(value, list):
        for item in value:
            _flatten(item)
    elif isinstance(value, Wire):
        for name in value.__struct_fields__:
            _flatten(getattr(value, name))
        if isinstance(value, Part):
            _flatten_data(value)
        metadata = getattr(value, "metadata", None)
        if isinstance(metadata, Raw) and too_deep(bytes(metadata), LEVELS):
            value.metadata = _flat_metadata(metadata)  # type: ignore[attr-defined]


def _flatten_data(part: Part) -> None:
    if isinstance(part.data, Raw) and too_deep(bytes(part.data), LEVELS):
        part.raw, part.data = b64encode(part.data).decode(), msgspec.UNSET
        part.media_type = part.media_type or JSON_TYPE


def _flat_metadata(metadata: Raw) -> Raw:
    members = _members.decode(metadata)
    # A member of that name is one more of those that are kept in it.
    deep = [name for name in members if name == AS_TEXT or too_deep(bytes(members[name]), LEVELS - 1)]
    texts = {name: bytes(members.pop(name)).decode() for name in deep}
    return Raw(msgspec.json.encode({**members, AS_TEXT: texts}))
