"""Reading a request whose big base64 stays where it is: in the bytes that were received.

A base64 string of 100 MB would be in memory several times if it were decoded like any other: as a string, normalised,
as bytes. So long strings are cut out of the JSON first, each replaced by a short one that nobody can have foreseen;
what is left is read as usual; and where a short one comes back as the `raw` of a part, the part holds a view of the
original bytes. Any other outcome means that the request is read as it is.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Raw

from protocol.errors import ParseError
from protocol.requests import SendMessageRequest
from protocol.stored_part import Held

R = TypeVar("R")

Span = tuple[int, int]

_BASE64_START = re.compile(rb"[A-Za-z0-9+/_-]{64}")


def read_lifted(
    data: bytes | Raw, limit: int, read: Callable[[bytes | Raw], R], request_of: Callable[[R], SendMessageRequest]
) -> R:
    """What `read` makes of the JSON of a request; base64 of more than `limit` bytes of content is `Held` in it.

    That it is base64 is not known yet. `request_of` finds the request in the result. Raises what `read` raises.
    """
    view = memoryview(data)
    spans = [span for span in _long_strings(view, limit * 4 // 3 + 4) if _may_be_base64(view, span)]
    if not spans:
        return read(data)
    tokens = {b64encode(os.urandom(24)).decode(): span for span in spans}
    try:
        result = read(_replaced(view, tokens))
    except ParseError:  # What was cut out may have been no string.
        return read(data)
    parts = [part for part in request_of(result).message.parts if part.raw in tokens]
    if len(parts) != len(tokens):
        return read(data)
    for part in parts:
        start, end = tokens[str(part.raw)]
        part.raw = Held(view[start:end], is_base64=True, reread=lambda: read(data))
    return result


def _long_strings(view: memoryview, least: int) -> Iterator[Span]:
    """What lies between two quotation marks that are more than `least` bytes apart: few, and found at the speed of
    memory however many there are."""
    last = -1
    for at in range(0, len(view), least):
        window = bytes(view[at : at + least])
        first = window.find(b'"')
        if first < 0:
            continue
        if last >= 0 and at + first - last - 1 > least:
            yield last + 1, at + first
        last = at + window.rfind(b'"')


def _may_be_base64(view: memoryview, span: Span) -> bool:
    """Whether it begins like base64, at the quotation mark that opens a string, and has no escapes."""
    start, end = span
    if not _BASE64_START.match(view[start : start + 64]) or bytes(view[start - 2 : start - 1]) == b"\\":
        return False
    return not any(b"\\" in bytes(view[at : min(at + 65536, end)]) for at in range(start, end, 65536))


def _replaced(view: memoryview, tokens: dict[str, Span]) -> bytes:
    pieces: list[bytes | memoryview] = []
    at = 0
    for token, (start, end) in tokens.items():
        pieces += (view[at:start], token.encode())
        at = end
    return b"".join([*pieces, view[at:]])
