"""The content of a part as bytes in pieces, however it is held: nothing here is in memory a second time as a whole."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Raw

from protocol.model import Part
from protocol.stored_part import Held, Kind, text_size
from tasks_app.content.storage import CHUNK

_URL_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_STEP = CHUNK // 3 * 4  # base64 characters of one piece


class NotBase64Error(Exception):
    """The content of the part with this `index` is not base64."""

    def __init__(self, index: int) -> None:
        super().__init__("is not base64")
        self.index = index


@dataclass(frozen=True, slots=True)
class BytesContent:
    """Bytes as they are."""

    content: bytes | memoryview

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.content)

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces whose length is a multiple of three."""
        step = _STEP // 4 * 3
        for at in range(0, len(self.content), step):
            yield bytes(self.content[at : at + step])


@dataclass(frozen=True, slots=True)
class TextContent:
    """A text in UTF-8."""

    text: str

    @property
    def size(self) -> int:
        """In bytes."""
        return text_size(self.text)

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces."""
        for at in range(0, len(self.text), CHUNK // 4):
            yield self.text[at : at + CHUNK // 4].encode()


class Base64Content:
    """What standard or URL-safe base64 stands for, padded or not."""

    def __init__(self, text: str | memoryview | bytes) -> None:
        self._text = text
        tail = self._piece(max(len(text) - 2, 0), len(text))
        self._digits = len(text) - tail.count(b"=")
        self._padding = tail.count(b"=")

    @property
    def size(self) -> int:
        """In bytes."""
        return self._digits * 3 // 4

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces whose length is a multiple of three. Raises ValueError for what is no base64."""
        if self._padding not in (0, -self._digits % 4):
            raise ValueError("wrong padding")
        for at in range(0, self._digits, _STEP):
            piece = self._piece(at, min(at + _STEP, self._digits)).translate(_URL_TO_STANDARD)
            if b"=" in piece:
                raise ValueError("padding inside")
            yield binascii.a2b_base64(piece + b"=" * (-len(piece) % 4), strict_mode=True)

    def _piece(self, start: int, end: int) -> bytes:
        piece = self._text[start:end]
        return piece.encode("ascii") if isinstance(piece, str) else bytes(piece)


Source = BytesContent | TextContent | Base64Content


def source_of(part: Part) -> tuple[Kind, Source]:
    """The member that holds the content of a part, and the content. A part that is a URL has none."""
    if isinstance(part.text, str):
        return "text", TextContent(part.text)
    if isinstance(part.data, Raw):
        return "data", BytesContent(memoryview(part.data))
    if isinstance(part.raw, Held):
        held = part.raw.content
        return "raw", Base64Content(held) if part.raw.is_base64 else BytesContent(held)
    if isinstance(part.raw, str):
        return "raw", Base64Content(part.raw)
    raise ValueError("a URL is not stored")
