"""Readers of single ProtoJSON values: more forgiving than the structs, never more than protobuf's own parser."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Raw, ValidationError
from msgspec.inspect import BoolType, DateTimeType, EnumType, IntType, RawType, StrType, Type

from protocol.json_text import is_object, one_line, value_fault
from protocol.model import Role
from protocol.states import TaskState
from protocol.timestamps import normalize_timestamp, parse_timestamp
from protocol.violations import Violations, shown

# A reader takes the JSON of a value and its path; it returns the value, ABSENT, or INVALID after noting a violation.
Reader = Callable[[Raw, str, Violations], Any]


class Absent:
    """Stands for a field that is not there, or holds what protobuf cannot tell from that."""


ABSENT: Final = Absent()

_TEXT = msgspec.json.Decoder(str)
_BOOL = msgspec.json.Decoder(bool)
UNSPECIFIED: dict[type[StrEnum], str] = {Role: "ROLE_UNSPECIFIED", TaskState: "TASK_STATE_UNSPECIFIED"}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_URL_TO_STANDARD = bytes.maketrans(b"-_", b"+/")


def scalar_reader(kind: Type, form: str) -> Reader:
    """The reader of a type. `form` is the `extra["json"]` of `protocol.model`, or ""."""
    match kind:
        case StrType():
            return _text_reader(kind, form)
        case IntType():
            return _integer_reader(kind)
        case EnumType():
            return _enum_reader(kind.cls)
        case RawType():
            return _read_object if form == "object" else _read_json
        case BoolType():
            return _read_bool
        case DateTimeType():
            return _read_moment
    raise TypeError(f"no reader for {kind}")


def normal_base64(text: str) -> str | None:
    """Standard padded base64 of standard or URL-safe, padded or unpadded base64; None if it is none of them."""
    try:
        given = text.encode("ascii").translate(_URL_TO_STANDARD)
        digits = given.rstrip(b"=")
        padded = digits + b"=" * (-len(digits) % 4)
        if given not in (digits, padded):
            return None
        content = binascii.a2b_base64(padded, strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return binascii.b2a_base64(content, newline=False).decode("ascii")


def _text_reader(kind: StrType, form: str) -> Reader:
    required, longest = bool(kind.min_length), kind.max_length
    read_form = {"base64": _base64, "timestamp": _timestamp, "key": _key}.get(form)

    def read(raw: Raw, path: str, out: Violations) -> Any:
        try:
            text = _TEXT.decode(raw)
        except ValidationError:
            return out.add(path, "must be a string")
        if required and not text:
            return out.add(path, "is required")
        if longest is not None and len(text) > longest:
            return out.add(path, f"must have at most {longest} characters, got {len(text)}")
        return read_form(text, path, out) if read_form else text

    return read


def _key(text: str, path: str, out: Violations) -> Any:
    return out.add(path, "must not hold U+0000") if "\0" in text else text


def _base64(text: str, path: str, out: Violations) -> Any:
    normal = normal_base64(text)
    return out.add(path, "must be base64") if normal is None else normal


def _timestamp(text: str, path: str, out: Violations) -> Any:
    try:
        return normalize_timestamp(text)
    except ValueError:
        return out.add(path, f"must be a timestamp such as 2025-10-28T10:30:00.000Z, got {shown(text)}")


def _read_moment(raw: Raw, path: str, out: Violations) -> Any:
    try:
        return parse_timestamp(_TEXT.decode(raw))
    except ValidationError:
        return out.add(path, "must be a string")
    except ValueError:
        return out.add(path, f"must be a timestamp such as 2025-10-28T10:30:00.000Z, got {shown(_source(raw))}")


def _read_bool(raw: Raw, path: str, out: Violations) -> Any:
    try:
        return _BOOL.decode(raw)
    except ValidationError:
        return out.add(path, "must be true or false")


def _integer_reader(kind: IntType) -> Reader:
    lowest, highest = kind.ge or 0, kind.le

    def read(raw: Raw, path: str, out: Violations) -> Any:
        number = _integer(raw)
        if number is None or number < lowest or (highest is not None and number > highest):
            return out.add(path, f"must be an integer from {lowest} to {highest}, got {shown(_source(raw))}")
        return number

    return read


def _integer(raw: Raw) -> int | None:
    """The integer of a JSON number or of a string of digits (ProtoJSON int32)."""
    quoted = _is_text(raw)
    digits = _TEXT.decode(raw) if quoted else _source(raw)
    if len(digits) > 20:
        return None
    if _INTEGER.fullmatch(digits):
        return int(digits)
    if quoted or not digits[-1:].isdigit():
        return None
    number = float(digits)
    return int(number) if number.is_integer() else None


def _enum_reader(kind: type[Any]) -> Reader:
    names: dict[str, StrEnum] = {member.value: member for member in kind}
    unspecified = UNSPECIFIED.get(kind, "")
    # Declaration follows the numbers of the protobuf definition; an enum that is not from there has none.
    others = [name for name in names if name != unspecified]
    numbered = [unspecified, *others] if unspecified else []
    allowed = ", ".join(others)

    def read(raw: Raw, path: str, out: Violations) -> Any:
        name = _TEXT.decode(raw) if _is_text(raw) else _name_at(numbered, raw)
        if name == unspecified and numbered:
            return ABSENT
        return names.get(name) or out.add(path, f"must be one of {allowed}, got {shown(_source(raw))}")

    return read


def _name_at(numbered: list[str], raw: Raw) -> str:
    number = _integer(raw)
    return numbered[number] if number is not None and 0 <= number < len(numbered) else ""


def _read_json(raw: Raw, path: str, out: Violations) -> Any:
    text = bytes(raw)
    fault = value_fault(text)
    if fault is not None:
        return out.add(path, fault)
    line = one_line(text)
    return raw if line is text else Raw(line)


def _read_object(raw: Raw, path: str, out: Violations) -> Any:
    if not is_object(raw):
        return out.add(path, "must be an object")
    return _read_json(raw, path, out)


def _is_text(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b'"'


def _source(raw: Raw) -> str:
    return bytes(raw).decode()
