"""Reads ProtoJSON in all the spellings that it allows (§5.5, §5.7), into the structs of this package.

Ignores unknown members; takes proto names, integer enums, quoted or fractional-form integers, both base64 alphabets,
timestamps with an offset; null is "not there". Refuses a field that is given twice, as readers differ on which one
counts (§5.1). It is the reference reading: `protocol.codec` only skips it for requests whose plain spelling gives the
same struct.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, DecodeError, Raw, ValidationError
from msgspec.inspect import (
    CollectionType,
    DictType,
    Field,
    IntType,
    ListType,
    Metadata,
    NoneType,
    RawType,
    StrType,
    StructType,
    Type,
    UnionType,
    type_info,
)

from protocol.errors import InvalidParamsError, ParseError, Violation
from protocol.json_text import TOO_DEEP, explain, is_null, join, repeated_members, too_deep
from protocol.model import Wire
from protocol.rules import check_rules
from protocol.scalars import ABSENT, Reader, scalar_reader
from protocol.violations import Violations, shown

T = TypeVar("T", bound=Wire)

Members = dict[str, Raw]

_ANY = msgspec.json.Decoder(Raw)
_MEMBERS = msgspec.json.Decoder(Members)
_ITEMS = msgspec.json.Decoder(list[Raw])


Check = Callable[[Any, Violations], None]


def read(kind: type[T], data: bytes | Raw, given: Mapping[str, str] | None = None, check: Check = check_rules) -> T:
    """The struct in a JSON text; no text at all, or null, is an empty object.

    `given` holds values known from elsewhere (the path of a URL), by either name; they win. `check` notes what is
    wrong across fields, of which those that could not be read may hold anything.
    Raises ParseError for what is not JSON, InvalidParamsError for what is not a `kind`.
    """
    text = bytes(data)
    if text in (b"", b"null"):
        text = b"{}"
    out = Violations()
    members = _root_members(text)
    reader: StructReader[T] = struct_reader(kind)
    reader.check_repeated(text, members, "", out)
    for name, value in (given or {}).items():
        reader.give(members, name, value, out)
    return finish(reader, members, out, check)


def finish(reader: StructReader[T], members: Members, out: Violations, check: Check = check_rules) -> T:
    """The struct of its members. Raises InvalidParamsError."""
    value = reader.build(members, "", out)
    check(value, out)
    out.finish()
    return value


def _root_members(text: bytes) -> Members:
    if too_deep(text):
        raise ParseError(TOO_DEEP)
    try:
        _ANY.decode(text)
        text.decode()
    except (DecodeError, UnicodeDecodeError):
        raise explain(text) from None
    try:
        return _MEMBERS.decode(text)
    except ValidationError:
        raise InvalidParamsError([Violation("", "must be an object")]) from None


@dataclass(frozen=True, slots=True)
class FieldReader:
    """How one field is found, read and defaulted."""

    name: str
    json_name: str
    kind: Type
    read: Reader
    # Makes the value of an absent field; None where the field is required.
    default: Callable[[], Any] | None
    null_is_value: bool

    def take(self, members: Members, path: str, out: Violations) -> Any:
        """The value, ABSENT or INVALID."""
        raw = members.get(self.json_name)
        if self.name != self.json_name and self.name in members:
            if raw is not None:
                return out.add(join(path, self.json_name), f"is given twice, also as {self.name}")
            raw = members[self.name]
        if raw is None or (is_null(raw) and not self.null_is_value):
            return ABSENT
        return self.read(raw, join(path, self.json_name), out)


class StructReader(Generic[T]):
    """Reads one kind of struct. Made once per kind by `struct_reader`."""

    def __init__(self, kind: type[T], structure: StructType) -> None:
        self.kind = kind
        self.fields = tuple(_field_reader(field) for field in structure.fields)
        self.by_name = {name: field for field in self.fields for name in (field.name, field.json_name)}
        self._choices = kind.ONE_OF or kind.AT_MOST_ONE_OF
        self._choice_names = ", ".join(field.json_name for field in self.fields if field.name in self._choices)

    def __call__(self, raw: Raw, path: str, out: Violations) -> Any:
        try:
            members = _MEMBERS.decode(raw)
        except ValidationError:
            return out.add(path, "must be an object")
        self.check_repeated(bytes(raw), members, path, out)
        return self.build(members, path, out)

    def check_repeated(self, text: bytes, members: Members, path: str, out: Violations) -> None:
        """Note the fields that an object has more than once. Unknown members do not count, however many."""
        for name in repeated_members(text, members):
            if name in self.by_name:
                out.add(join(path, self.by_name[name].json_name), "is given more than once")

    def build(self, members: Members, path: str, out: Violations) -> T:
        """The struct of its members; with violations noted, one that must not be used."""
        values: dict[str, Any] = {}
        chosen: list[str] = []
        for field in self.fields:
            value = field.take(members, path, out)
            if value is not ABSENT and field.name in self._choices:
                chosen.append(field.json_name)
            if value is ABSENT and field.default is None:
                value = out.add(join(path, field.json_name), "is required")
            values[field.name] = field.default() if value is ABSENT and field.default else value
        self._check_choice(chosen, path, out)
        return self.kind(**values)

    def give(self, members: Members, name: str, text: str, out: Violations) -> None:
        """Put a string into the members of a struct, in the place of what is there. Ignores an unknown name."""
        field = self.by_name.get(name)
        if field is None:
            return
        members.pop(field.name, None)
        try:
            members[field.json_name] = Raw(msgspec.json.encode(text))
        except UnicodeEncodeError:
            out.add(field.json_name, "holds a lone surrogate")

    def _check_choice(self, chosen: list[str], path: str, out: Violations) -> None:
        if len(chosen) > 1:
            out.add(path, f"must have only one of {self._choice_names}, got {', '.join(chosen)}")
        elif self.kind.ONE_OF and not chosen:
            out.add(path, f"must have one of {self._choice_names}")


@functools.cache
def struct_reader(kind: type[T]) -> StructReader[T]:
    """The reader of a kind of struct."""
    structure = type_info(kind)
    assert isinstance(structure, StructType)
    return StructReader(kind, structure)


def _field_reader(field: Field) -> FieldReader:
    kind, form = _plain(field.type)
    return FieldReader(
        name=field.name,
        json_name=field.encode_name,
        kind=kind,
        read=_reader(field.type),
        default=_default(field, kind),
        # google.protobuf.Value is the one type for which null is a value.
        null_is_value=isinstance(kind, RawType) and form != "object",
    )


def _default(field: Field, kind: Type) -> Callable[[], Any] | None:
    """What an absent field is. To protobuf a required one is empty, which may be allowed."""
    if not field.required:
        if field.default_factory is not msgspec.NODEFAULT:
            factory: Callable[[], Any] = field.default_factory
            return factory
        value = UNSET if field.default is msgspec.NODEFAULT else field.default
        return lambda: value
    match kind:
        case StrType(min_length=None):
            return str
        case ListType(min_length=None):
            return list
        case DictType():
            return dict
        case IntType(ge=0):
            return int
    return None


def _plain(kind: Type) -> tuple[Type, str]:
    """A type without its wrapping, and the form that `protocol.model` gave it."""
    if isinstance(kind, Metadata):
        return kind.type, (kind.extra or {}).get("json", "")
    if isinstance(kind, UnionType):
        (inner,) = [one for one in kind.types if not isinstance(one, NoneType)]
        return _plain(inner)
    return kind, ""


def _reader(wrapped: Type) -> Reader:
    kind, form = _plain(wrapped)
    if isinstance(kind, StructType):
        return struct_reader(kind.cls)
    if isinstance(kind, CollectionType):
        return _list_reader(_reader(kind.item_type), bool(kind.min_length))
    if isinstance(kind, DictType):
        return _map_reader(_reader(kind.value_type))
    return scalar_reader(kind, form)


def _list_reader(read_item: Reader, required: bool) -> Reader:
    def read_list(raw: Raw, path: str, out: Violations) -> Any:
        try:
            items = _ITEMS.decode(raw)
        except ValidationError:
            return out.add(path, "must be an array")
        if required and not items:
            return out.add(path, "must have at least one element")
        return [read_item(item, f"{path}[{index}]", out) for index, item in enumerate(items)]

    return read_list


def _map_reader(read_value: Reader) -> Reader:
    def read_map(raw: Raw, path: str, out: Violations) -> Any:
        try:
            members = _MEMBERS.decode(raw)
        except ValidationError:
            return out.add(path, "must be an object")
        return {key: read_value(member, join(path, shown(key)), out) for key, member in members.items()}

    return read_map
