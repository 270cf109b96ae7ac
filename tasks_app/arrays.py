"""PostgreSQL array literals, several times cheaper than the driver's adaptation element by element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime


def text_array(values: Iterable[str | None]) -> str:
    """A text[] literal. U+0000 has no place in it."""
    quoted = ["NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"' for v in values]
    return "{" + ",".join(quoted) + "}"


def plain_array(values: Iterable[object]) -> str:
    """An array literal of numbers, flags or ids that need no quoting."""
    return "{" + ",".join(map(str, values)) + "}"


def time_array(values: Iterable[datetime | None]) -> str:
    """A timestamptz[] literal of aware times."""
    return "{" + ",".join(_times(values)) + "}"


def _times(values: Iterable[datetime | None]) -> Iterator[str]:
    """Neighbours are often one moment, and printing it is what costs."""
    latest, text = None, "NULL"
    for moment in values:
        if moment is not latest:
            latest, text = moment, "NULL" if moment is None else '"' + moment.isoformat() + '"'
        yield text
