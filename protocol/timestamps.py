"""Points in time as the protocol writes them: ISO 8601, UTC, milliseconds (§5.6.1)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

_RFC_3339 = re.compile(
    r"(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


# A busy process asks for the time, and prints it, many times in a millisecond.
_latest: tuple[int, datetime] = (0, datetime.fromtimestamp(0, UTC))
_printed: tuple[datetime, str] = (_latest[1], "1970-01-01T00:00:00.000Z")


def now() -> datetime:
    """The time in UTC, cut to the milliseconds that are printed: what is stored equals what a caller saw."""
    global _latest
    milliseconds = time.time_ns() // 1_000_000
    known, moment = _latest
    if known != milliseconds:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
        _latest = milliseconds, moment
    return moment


def print_timestamp(moment: datetime) -> str:
    """`2025-10-28T10:30:00.000Z` of an aware datetime."""
    global _printed
    known, text = _printed
    if known is not moment:
        text = moment.astimezone(UTC).isoformat("T", "milliseconds")[:-6] + "Z"
        _printed = moment, text
    return text


def parse_timestamp(text: str) -> datetime:
    """The aware UTC datetime of an RFC 3339 timestamp with any offset and up to nine digits of a second.

    Nanoseconds are rounded up to microseconds, so "at or after" keeps its meaning. Raises ValueError.
    """
    moment, nanoseconds = _split(text)
    microseconds = -(-nanoseconds // 1000)
    try:
        return moment + timedelta(microseconds=microseconds)
    except OverflowError as error:
        raise ValueError("out of range") from error


def normalize_timestamp(text: str) -> str:
    """The same moment ending in Z, with no, 3, 6 or 9 digits of a second as ProtoJSON prints. Raises ValueError."""
    moment, nanoseconds = _split(text)
    whole = moment.isoformat()[:19]
    digits = f"{nanoseconds:09}"
    if nanoseconds % 1000:
        return f"{whole}.{digits}Z"
    if nanoseconds % 1_000_000:
        return f"{whole}.{digits[:6]}Z"
    # Milliseconds stay when they were written as zeros: the form of §5.6.1.
    return f"{whole}.{digits[:3]}Z" if "." in text else f"{whole}Z"


def _split(text: str) -> tuple[datetime, int]:
    """A timestamp as whole seconds in UTC and nanoseconds."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise ValueError("not an RFC 3339 timestamp with an offset")
    whole, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(whole + ("+00:00" if offset == "Z" else offset)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("out of range") from error
    return moment, int((fraction or "").ljust(9, "0"))
