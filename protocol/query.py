"""Requests in the query string of a GET or DELETE (§11.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Raw
from msgspec.inspect import BoolType, EnumType

from protocol.model import Wire
from protocol.protojson import Members, StructReader, finish, struct_reader
from protocol.violations import Violations

T = TypeVar("T", bound=Wire)

_BOOLEANS = {"true": Raw(b"true"), "false": Raw(b"false")}


def decode_query(kind: type[T], pairs: Iterable[tuple[str, str]], path: Mapping[str, str] | None = None) -> T:
    """The request in decoded query parameters and path values, by camelCase or proto names; path values win.

    Unknown parameters are ignored. Raises InvalidParamsError.
    """
    out = Violations()
    members: Members = {}
    reader: StructReader[T] = struct_reader(kind)
    for name, text in pairs:
        field = reader.by_name.get(name)
        if field is None:
            continue
        if field.json_name in members:
            out.add(field.json_name, "is given more than once")
            continue
        reader.give(members, name, text, out)
        # A JSON string does for text, integers and timestamps; the other types have their own literals.
        if isinstance(field.kind, BoolType) and text in _BOOLEANS:
            members[field.json_name] = _BOOLEANS[text]
        elif isinstance(field.kind, EnumType) and text.isascii() and text.isdigit() and len(text) < 10:
            members[field.json_name] = Raw(str(int(text)).encode())
    for name, text in (path or {}).items():
        reader.give(members, name, text, out)
    return finish(reader, members, out)
