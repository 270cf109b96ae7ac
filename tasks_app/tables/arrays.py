"""PostgreSQL array literals, several times cheaper than the driver's adaptation element by element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

NULL = "NULL"

# Neighbours are often one moment, and printing it is what costs.
_printed: tuple[datetime | None, str | None] = (None, None)


def text(value: str | None) -> str:
    """An element of a text[] literal. U+0000 has no place in it."""
    return NULL if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def texts(column: Sequence[str | None]) -> str:
    """The literal of a text[]."""
    if None in column:
        return array(map(text, column))
    whole = "\0".join(column)  # type: ignore[arg-type]
    if whole.count("\0") != len(column) - 1:  # one has U+0000 in it: it is refused where it is sent
        return array(map(text, column))
    return '{"' + whole.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","') + '"}'


def printed(value: datetime | None) -> str | None:
    """An aware time, as a value by itself or to be quoted by `text`."""
    global _printed
    known, text = _printed
    if value is not known:
        text = None if value is None else value.isoformat()
        _printed = value, text
    return text


def flag(value: bool) -> str:
    """A value by itself, or an element of a bool[] literal."""
    return "t" if value else "f"


def array(elements: Iterable[str]) -> str:
    """The literal of elements that need no quoting, or have it."""
    return "{" + ",".join(elements) + "}"


def arrays(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """One literal for each of the `width` columns of rows of elements."""
    return [array(column) for column in zip(*rows, strict=True)] if rows else ["{}"] * width
