"""What valid JSON is here: UTF-8, no lone surrogates, numbers that fit a double, limited nesting (RFC 8259, §13.4)."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate, islice
from typing import Any

import msgspec
from msgspec import Raw

from protocol.errors import A2AError, InvalidParamsError, ParseError, Violation
from protocol.violations import VIOLATIONS_MAX

# Levels of arrays and objects, counted from the request.
DEPTH_MAX = 100
TOO_DEEP = f"The JSON is nested deeper than {DEPTH_MAX} levels."

# Possessive, and content with the end of the text for a closing quote: linear in hostile text too.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
# Opening brackets become +1, closing ones -1 as signed bytes; all else is deleted.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"0" * 9)
# 10**308 has 309 digits; shorter integers fit a double.
_TOO_MANY_DIGITS = b"0" * 309
_SURROGATE = re.compile("[\ud800-\udfff]")


def too_deep(text: bytes, limit: int = DEPTH_MAX) -> bool:
    """Whether JSON nests deeper than `limit`. Of malformed JSON, whether the part before the fault does."""
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    brackets = _STRING.sub(b"", text).translate(_STEPS, _OTHERS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0) > limit


def value_fault(text: bytes) -> str | None:
    """What is wrong with well-formed JSON that will be passed on as it came. Raises DecodeError for bad UTF-8."""
    try:
        msgspec.json.decode(text)
    except msgspec.ValidationError:
        return "holds a number out of range"
    if len(text) >= len(_TOO_MANY_DIGITS) and _TOO_MANY_DIGITS in text.translate(_DIGITS_TO_ZERO):
        try:
            json.loads(text, parse_int=_finite)
        except ValueError:
            return "holds a number out of range"
    return None


def one_line(text: bytes) -> bytes:
    """The same JSON without line breaks, which a server-sent event could not carry; all else stays as it is."""
    return msgspec.json.format(text, indent=-1) if b"\n" in text or b"\r" in text else text


def explain(text: bytes) -> A2AError:
    """Why msgspec could not read `text`, which is not too deep: no JSON, or JSON whose strings are no Unicode."""
    try:
        value = json.loads(text.decode(), parse_constant=_finite, parse_int=_finite)
    except UnicodeDecodeError:
        return ParseError("The JSON is not encoded in UTF-8.")
    except ValueError:
        return ParseError()
    paths = islice(lone_surrogates(value, ""), VIOLATIONS_MAX)
    violations = [Violation(path, "holds a lone surrogate") for path in paths]
    return InvalidParamsError(violations) if violations else ParseError()


def lone_surrogates(value: Any, path: str) -> Iterator[str]:
    """Paths of the strings, or of the objects whose keys, hold a surrogate."""
    if isinstance(value, str):
        if _SURROGATE.search(value):
            yield path
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from lone_surrogates(inner, f"{path}[{index}]")
    elif isinstance(value, dict):
        if any(_SURROGATE.search(key) for key in value):
            yield path
            return
        for key, inner in value.items():
            yield from lone_surrogates(inner, join(path, key))


def quotes(text: bytes) -> int:
    """How many quotation marks delimit the strings of well-formed JSON: two for each, names included."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"')


def repeated_members(text: bytes, members: Mapping[str, Raw]) -> list[str]:
    """Names that a well-formed object has more than once, given its members as a decoder that keeps the last one has
    them. JSON leaves open which one counts, so two readers may understand such an object differently (RFC 8259 §4).
    """
    if quotes(text) == sum(2 + quotes(bytes(value)) for value in members.values()):
        return []
    names: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names[:] = [name for name, _ in pairs]  # the outermost object comes last

    json.loads(text, object_pairs_hook=note, parse_int=str, parse_float=str)
    return [name for name, count in Counter(names).items() if count > 1]


def is_object(raw: Raw) -> bool:
    """Whether well-formed JSON is an object."""
    return bytes(memoryview(raw)[:1]) == b"{"


def is_null(raw: Raw) -> bool:
    """Whether well-formed JSON is null."""
    return bytes(memoryview(raw)[:5]) == b"null"


def join(path: str, name: str) -> str:
    """Path of a member."""
    return f"{path}.{name}" if path else name


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("out of range")
    return number
