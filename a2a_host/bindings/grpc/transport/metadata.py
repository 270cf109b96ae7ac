"""Metadata of calls as fields of HTTP/2: names are lower case, values text, or bytes where the name ends with -bin."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence

Metadata = Sequence[tuple[str, str | bytes]]
Fields = list[tuple[bytes, bytes]]

_NAME = re.compile(rb"[0-9a-z_.-]+")
_TEXT = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_OF_CONNECTIONS = frozenset([b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"])


class MalformedError(Exception):
    """Fields that HTTP/2 or gRPC forbid."""


def entries(name: bytes, value: bytes) -> Metadata:
    """The metadata in a field: several of binary values that are joined by commas. Raises MalformedError."""
    if not _NAME.fullmatch(name) or name in _OF_CONNECTIONS or not _TEXT.fullmatch(value):
        raise MalformedError
    key = name.decode()
    if not key.endswith("-bin"):
        return ((key, value.decode("latin-1")),)
    return [(key, _decoded(part)) for part in value.split(b",")]


def _decoded(text: bytes) -> bytes:
    """Base64, with its padding or without. Raises MalformedError."""
    bare = text.strip().rstrip(b"=")
    try:
        return b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        raise MalformedError from None


def written(metadata: Metadata) -> Fields:
    """Metadata as fields."""
    return [(name.encode(), value.encode() if isinstance(value, str) else _encoded(value)) for name, value in metadata]


def _encoded(value: bytes) -> bytes:
    return b64encode(value).rstrip(b"=")
