"""How a valid request becomes a bad one: in its structure, then in its bytes. All choices are Hypothesis's."""

from __future__ import annotations

import copy
import json
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Token(str):
    """JSON text that is written as it is."""


class Pairs(list[tuple[str, Any]]):
    """An object whose members may repeat."""


_DEEP = [Token("[" * depth + "]" * depth) for depth in (50, 99, 101, 1000)]
_ODD: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 2**31 - 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, "", " ", "\0", "a\0b"),
    *("\ud800", "\udfff\ud800", "x" * 255, "x" * 256, "x" * 3000, "ROLE_AGENT", "agent", "TASK_STATE_UNSPECIFIED"),
    *("-0", "1.0", "1e2", "true", "null", "../..", "%2e", "\u202e\u0301", "\U0001f600" * 90, "2025-02-30T00:00:00Z"),
    *([], {}, [[]], [None], {"": {}}, {"text": "x"}, {"text": "x", "data": None}, [{}], ["x"] * 30, {"__proto__": {}}),
    *map(Token, ("1e400", "-1e400", "1" * 400, "NaN", "Infinity", "01", "1.", "-", "'x'", '"\\u12"', '"\\ud800"')),
    *map(Token, ('"\x01"', "{,}", '{"a":1,"a":2}', "-0", "1E-400", "[1,]", '"\\x"', "/**/1", "tru")),
    *_DEEP,
]
_ODD_ONES: st.SearchStrategy[Any] = st.sampled_from(_ODD).map(copy.deepcopy)
VALUES: st.SearchStrategy[Any] = st.one_of(_ODD_ONES, st.text(max_size=8), st.integers(), st.floats(), _ODD_ONES)
_DICE = st.binary(min_size=32, max_size=32)
_BYTES = st.binary(min_size=1, max_size=4)
_BINARY = st.binary(max_size=60)
_ENCODINGS = ("utf-16", "utf-32", "utf-16-le")
NAMES = st.one_of(
    st.sampled_from(["", "id", "kind", "type", "text", "message", "sessionId", "taskId", "parts", "role", "\ud800"]),
    st.text(max_size=5),
)
TREES: st.SearchStrategy[Any] = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


class Draw:
    """Hypothesis's `draw`, and small choices, 16 of which come from one draw: each costs a third of a millisecond."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._dice = b""

    def __call__(self, strategy: st.SearchStrategy[T]) -> T:
        return self._draw(strategy)

    def below(self, sides: int) -> int:
        """A number from 0 to one below `sides`."""
        self._dice = self._dice or self._draw(_DICE)
        thrown, self._dice = self._dice[:2], self._dice[2:]
        return int.from_bytes(thrown) % sides


def spoiled(draw: Draw, document: Any) -> Any:
    """The document after one to three changes of its structure."""
    changed = copy.deepcopy(document)
    for _ in range(1 + draw.below(3)):
        places = list(_places(changed))
        if not places:
            return draw(VALUES)
        holder, key = places[draw.below(len(places))]
        _change(draw, holder, key)
    return changed


def _places(value: Any) -> Any:
    """(holder, key) of every value inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, Pairs):
        return
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def _change(draw: Draw, holder: Any, key: Any) -> None:
    kind = draw.below(10)
    if kind <= 4:
        holder[key] = draw(VALUES)
    elif kind == 5:
        del holder[key]
    elif kind == 6:
        holder[key] = [holder[key]]
    elif isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif kind == 7:
        holder[draw(NAMES)] = holder.pop(key)
    elif kind == 8:
        holder[draw(NAMES)] = draw(VALUES)
    elif isinstance(holder[key], dict):
        holder[key] = Pairs([*holder[key].items(), *list(holder[key].items())[:2]])


def written(value: Any, ascii: bool = True) -> bytes:
    """JSON text, with what a JSON library would refuse to write."""
    return _text(value, ascii).encode("utf-8", "surrogatepass")


def _text(value: Any, ascii: bool) -> str:
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, list) and not isinstance(value, Pairs):
        return f"[{','.join(_text(inner, ascii) for inner in value)}]"
    if isinstance(value, dict | Pairs):
        members = value if isinstance(value, Pairs) else value.items()
        return "{" + ",".join(f"{json.dumps(n, ensure_ascii=ascii)}:{_text(v, ascii)}" for n, v in members) + "}"
    return json.dumps(value, ensure_ascii=ascii)


def damaged(draw: Draw, text: bytes) -> bytes:
    """The bytes, more often than not as they are, else cut, changed or in another encoding."""
    kind = draw.below(22)
    at = draw.below(len(text)) if kind > 12 and text else 0
    match kind:
        case 13:
            return text[:at]
        case 14:
            return text[:at] + text[at + 1 :]
        case 15:
            return text[:at] + draw(_BYTES) + text[at:]
        case 16:
            return text[:at] + draw(_BYTES)[:1] + text[at + 1 :]
        case 17:
            return text.decode("utf-8", "replace").encode(_ENCODINGS[at % 3])
        case 18:
            return b"\xef\xbb\xbf" + text
        case 19:
            return text + text[at:]
        case 20:
            return draw(_BINARY)
        case 21:
            return b"[" * at + text
    return text


def body(draw: Draw, document: Any) -> bytes:
    """Bytes that began as the document: as it is now and then, else spoiled; or nothing of it at all."""
    kind = draw.below(24)
    value = document if kind < 2 else draw(TREES) if kind < 4 else spoiled(draw, document)
    return damaged(draw, written(value, ascii=bool(kind % 2)))
