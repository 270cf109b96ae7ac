"""What stands in a stored body for content that is kept in a file: a part whose `raw` is no base64.

    {"raw": "stored:text:0198…:300000:Once upon a time", "mediaType": "text/markdown"}

Nobody else can make one: `raw` of callers is checked to be base64, that of agents is encoded by the host, and neither
alphabet has a colon. Text, data and metadata that look like one are no `raw` of a part, and only that is looked at.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import msgspec

from protocol.model import Part

Kind = Literal["raw", "text", "data"]

PREFIX = "stored:"
MARK = b'"raw":"stored:'
"""Found in every body that holds a stored part, and hardly in any other."""
START_MAX = 10_000
"""Characters of a text that stay in the body, to be searched and shown."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """`kind` is the member that the part had instead of `raw`; `size` is that of the file in bytes; `start` is how a
    text begins."""

    kind: Kind
    id: str
    size: int
    start: str = ""

    def stand_in(self, part: Part) -> Part:
        """The part with this in the place of its content."""
        raw = f"{PREFIX}{self.kind}:{self.id}:{self.size}:{self.start}"
        return Part(raw=raw, metadata=part.metadata, filename=part.filename, media_type=part.media_type)


def stored_part(part: Part) -> StoredPart | None:
    """What the content of a part is, if it is in a file."""
    if not isinstance(part.raw, str) or not part.raw.startswith(PREFIX):
        return None
    _, kind, part_id, size, start = part.raw.split(":", 4)
    return StoredPart(cast(Kind, kind), part_id, int(size), start)


def start_of(part: Part) -> str | None:
    """The text of a part, or how it begins; None for a part that is no text."""
    if isinstance(part.text, str):
        return part.text
    stored = stored_part(part)
    return stored.start if stored is not None and stored.kind == "text" else None


class Held(str):
    """Stands in `Part.raw` for content that is not base64 in memory yet, or not any more: on its way to or from a file.

    As a text it is empty; `codec.encode` writes the base64. `content` is the bytes themselves or, with `is_base64`,
    their base64 as it came; `digest` is their SHA-256 in hexadecimal digits, once it is known; `reread` reads the
    request that it came in again, as it was, which says what is wrong with it.
    """

    content: bytes | memoryview
    is_base64: bool
    digest: str = ""
    reread: Callable[[], object] | None

    def __new__(
        cls, content: bytes | memoryview, is_base64: bool = False, reread: Callable[[], object] | None = None
    ) -> Held:
        """Hold content."""
        held = super().__new__(cls)
        held.content, held.is_base64, held.reread = content, is_base64, reread
        return held

    @property
    def base64(self) -> str:
        """The content as base64, as it came or standard and padded. It is in memory once more then."""
        return bytes(self.content).decode("ascii") if self.is_base64 else b64encode(self.content).decode()


def text_size(text: str) -> int:
    """Bytes of a text in UTF-8, without a copy of all of it."""
    return len(text) if text.isascii() else sum(len(text[i : i + 65536].encode()) for i in range(0, len(text), 65536))


def size_of(part: Part) -> int:
    """Bytes of the content of a part; of base64 about so many, of a URL or of what is stored already none."""
    if isinstance(part.text, str):
        return text_size(part.text)
    if isinstance(part.raw, Held):
        return len(part.raw.content) * 3 // 4 if part.raw.is_base64 else len(part.raw.content)
    if isinstance(part.raw, str):
        return 0 if part.raw.startswith(PREFIX) else len(part.raw) * 3 // 4
    return len(memoryview(part.data)) if isinstance(part.data, msgspec.Raw) else 0
