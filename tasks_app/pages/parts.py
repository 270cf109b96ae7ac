"""Parts of messages and artifacts, prepared for the templates."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.utils.safestring import SafeString
from msgspec import UNSET, UnsetType

from agents.media_types import essence
from protocol.model import Part
from protocol.stored_part import StoredPart, stored_part
from tasks_app.pages import rendering

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml"})
IMAGE_LIMIT = 8 * 1024 * 1024  # bytes; larger images are offered as a download only
TEXT_LIMIT = 200_000  # characters of one text that are put on a page
PREVIEW_LIMIT = 64 * 1024  # bytes of a text file that are shown beside its download


@dataclass(slots=True)
class Block:
    """One thing to show. `kind` is text, markdown, code, image, file, link or address (a URL that is no safe link).

    `html` is set for markdown and code. `source` names the stored part for the download view: `<origin>/<index>`.
    """

    kind: str
    text: str = ""
    html: SafeString | None = None
    media_type: str = ""
    filename: str = ""
    source: str = ""
    size: int = 0
    cut: int = 0  # characters left out of `text`; bytes, if the whole text is `in_file`
    in_file: bool = False


def blocks(parts: Sequence[Part], origin: str) -> list[Block]:
    """What to show for the parts of one message or artifact event, which `origin` names (`m<position>`, `e<seq>`)."""
    return [_block(part, f"{origin}/{index}") for index, part in enumerate(parts)]


def joined(chunks: Sequence[tuple[str, Sequence[Part]]]) -> list[Block]:
    """What to show for an artifact of several events: text that goes on in the next chunk is one text."""
    parts: list[tuple[Part, str]] = []
    for origin, chunk in chunks:
        for index, part in enumerate(chunk):
            if parts and index == 0 and _continues(parts[-1][0], part):
                last, source = parts[-1]
                parts[-1] = (Part(text=f"{last.text}{part.text}", media_type=last.media_type), source)
            else:
                parts.append((part, f"{origin}/{index}"))
    return [_block(part, source) for part, source in parts]


def _continues(last: Part, part: Part) -> bool:
    return (
        last.text is not UNSET
        and part.text is not UNSET
        and (last.media_type, last.filename) == (part.media_type, part.filename)
    )


def _block(part: Part, source: str) -> Block:
    media_type = essence(part.media_type)
    stored = stored_part(part)
    if stored is not None:
        return _stored_block(stored, media_type, part.filename, source)
    if part.text is not UNSET:
        return _text_block(part.text, media_type, part.filename, source)
    if part.data is not UNSET:
        html = rendering.json_code(bytes(part.data).decode())
        return Block("code", html=html, media_type="application/json", filename=part.filename, source=source)
    if part.url is not UNSET:
        kind = "link" if _safe_url(part.url) else "address"
        return Block(kind, text=part.url, media_type=media_type, filename=part.filename)
    return _file_block(part.raw, media_type, part.filename, source)


def _text_block(text: str, media_type: str, filename: str, source: str) -> Block:
    block = Block("text", text[:TEXT_LIMIT], media_type=media_type, filename=filename, source=source)
    block.cut = len(text) - len(block.text)
    if rendering.is_markdown(text, media_type):
        block.kind, block.html = "markdown", rendering.markdown(text)
    elif html := rendering.code(text, media_type, filename):
        block.kind, block.html = "code", html
    return block


def _stored_block(stored: StoredPart, media_type: str, filename: str, source: str) -> Block:
    """What is kept in a file is a link to it; a text also shows how it begins."""
    if stored.kind == "text":
        block = Block("text", stored.start, media_type=media_type, filename=filename, source=source, in_file=True)
        block.cut = stored.size - len(stored.start.encode())
        return block
    if stored.kind == "data":
        media_type = "application/json"
    is_image = media_type in IMAGE_TYPES and stored.size <= IMAGE_LIMIT
    kind = "image" if is_image else "file"
    return Block(kind, media_type=media_type, filename=filename, source=source, size=stored.size)


def _file_block(raw: str | UnsetType, media_type: str, filename: str, source: str) -> Block:
    encoded = "" if raw is UNSET else raw
    size = len(encoded) * 3 // 4 - encoded[-2:].count("=")
    block = Block("file", media_type=media_type, filename=filename, source=source, size=size)
    if media_type in IMAGE_TYPES and size <= IMAGE_LIMIT:
        block.kind = "image"
    elif (media_type.startswith("text/") or media_type == "application/json") and size <= PREVIEW_LIMIT:
        text = _decoded(encoded)
        block.text = text
        block.html = rendering.code(text, media_type, filename)
    return block


def _decoded(encoded: str) -> str:
    """The text of a small file, empty if it is not UTF-8."""
    try:
        return base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _safe_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def outline(parts: Sequence[Part]) -> str:
    """Parts in a few words, for the event log: the start of a text, kinds and sizes of the rest."""
    return ", ".join(_outline(part) for part in parts[:4]) + (", …" if len(parts) > 4 else "")


def _outline(part: Part) -> str:
    if part.text is not UNSET:
        line = " ".join(part.text[:200].split())
        return f"“{line[:80]}…”" if len(line) > 80 or len(part.text) > 200 else f"“{line}”"
    if part.data is not UNSET:
        return f"data, {len(bytes(part.data))} bytes of JSON"
    if part.url is not UNSET:
        return f"url {part.url[:80]}"
    name = part.filename or essence(part.media_type) or "file"
    stored = stored_part(part)
    if stored is not None:
        return f"{stored.kind} of {stored.size} bytes in a file" + (f", {name}" if part.filename else "")
    return f"{name}, {len(part.raw or '') * 3 // 4} bytes"
