"""Requests to send a message that a version would take, were they not written as drafts of it were:

- parts name their `type` (`protocol.dialects.tagged`),
- `taskId` and `sessionId` stand beside `message` and mean its `taskId` and `contextId`,
- a message has no `messageId`; one is made up, for requests that have one of the above only.

Answers are those of the version, with the type added to each part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw

from protocol import codec
from protocol.dialects import Dialect
from protocol.dialects.tagged import (
    Members,
    TaggedParts,
    encode,
    encode_items,
    is_tagged,
    items_of,
    members_of,
    note_repeated,
    text_of,
    write_parts,
)
from protocol.dialects.v1 import V1_0
from protocol.errors import InvalidParamsError, Violation
from protocol.ids import new_id
from protocol.json_text import is_null, too_deep
from protocol.model import Wire
from protocol.requests import SendMessageRequest
from protocol.violations import Violations

T = TypeVar("T", bound=Wire)

# Beside the message in drafts, inside of it in the versions.
_BESIDE = {"taskId": "taskId", "sessionId": "contextId"}
# Without one of these strings, a request is no draft: cheaper than looking into it.
_HINTS = (b'"type"', b'"sessionId"', b'"taskId"')


class Draft:
    """The drafts of one version, as the dialect of one request: it knows what the fields are called there."""

    def __init__(self, base: Dialect) -> None:
        self.base = base
        self.version = base.version
        self._names: Mapping[str, str] = {}

    def read(self, kind: type[T], data: bytes | Raw | None, path: Mapping[str, str] | None = None) -> T:
        """As the version reads it, after the translation of what only drafts have. See `protocol.dialects.Dialect`."""
        draft = _DraftRequest.find(data) if kind is SendMessageRequest else None
        if draft is None:
            return self.base.read(kind, data, path)
        self._names = draft.names
        translated = draft.translate(kinds=self.base is not V1_0)
        try:
            return self.base.read(kind, translated, path)
        except InvalidParamsError as error:
            raise InvalidParamsError(self._named(error.violations), error.message) from None

    def write(self, kind: type[Wire], body: bytes) -> bytes:
        """The response of the version, with types in its parts. A task of 0.3 has its id as `taskId`, too."""
        written = write_parts(self.base.write(kind, body))
        return bytes(written if self.base is V1_0 else _with_task_id(written))

    def renamed(self, kind: type[Wire], violations: list[Violation]) -> list[Violation]:
        """See `protocol.dialects.Dialect`."""
        return self._named(self.base.renamed(kind, violations))

    def _named(self, violations: list[Violation]) -> list[Violation]:
        return [Violation(self._names.get(v.field, v.field), v.description) for v in violations]


def read_request(
    dialect: Dialect, kind: type[T], data: bytes | Raw | None, path: Mapping[str, str] | None = None
) -> tuple[T, Dialect]:
    """(the request, the dialect to answer in): the drafts of `dialect` if the request is recognisably one of them.

    A plain request of 1.0 is read as if there were no drafts, in the same time.
    """
    if kind is SendMessageRequest:
        plain = codec.decode_plain(kind, data) if dialect is V1_0 and path is None else None
        if plain is not None:
            return plain, dialect
        if _DraftRequest.find(data) is not None:
            drafts = Draft(dialect)
            return drafts.read(kind, data, path), drafts
    return dialect.read(kind, data, path), dialect


class _DraftRequest:
    """A request to send a message that is written as in a draft. `names` has what its fields are called, by the path
    that they have once it is translated."""

    def __init__(self, text: bytes, root: Members, message: Members, parts: list[Raw] | None) -> None:
        self._text = text
        self._root = root
        self._message = message
        self._parts = parts
        self.names: dict[str, str] = {}

    @classmethod
    def find(cls, data: bytes | Raw | None) -> _DraftRequest | None:
        """The request in received JSON; None if nothing in it is written as only drafts have it."""
        text = b"" if data is None else bytes(data)
        if not any(hint in text for hint in _HINTS) or too_deep(text) or not _is_utf8(text):
            return None
        root = members_of(text)
        message = members_of(root.get("message")) if root is not None else None
        if root is None or message is None:
            return None
        parts = items_of(message.get("parts"))
        beside = any(_given(root, name) for name in _BESIDE)
        if not beside and not any(is_tagged(part) for part in parts or []):
            return None
        return cls(text, root, message, parts)

    def translate(self, kinds: bool) -> Raw:
        """The request as the version has it. `kinds`: parts have a `kind` there, whose values are those of the types.

        Raises InvalidParamsError.
        """
        out = Violations()
        note_repeated(self._text, self._root, "", out)
        note_repeated(self._root["message"], self._message, "message", out)
        for name, inside in _BESIDE.items():
            self._move_inside(name, inside, out)
        if not _given(self._message, "messageId"):
            self._message["messageId"] = Raw(msgspec.json.encode(new_id()))
        if self._parts is not None:
            self._message["parts"] = encode_items(self._translated_parts(kinds, out))
        self._root["message"] = encode(self._message)
        out.finish()
        return encode(self._root)

    def _move_inside(self, name: str, inside: str, out: Violations) -> None:
        value = self._root.pop(name, None)
        if value is None or is_null(value):
            return
        if not _given(self._message, inside):
            self._message[inside] = value
            self.names[f"message.{inside}"] = name
        elif text_of(value) != text_of(self._message[inside]):
            out.add(name, f"differs from message.{inside}")

    def _translated_parts(self, kinds: bool, out: Violations) -> list[Raw]:
        paths = [(part, f"message.parts[{index}]") for index, part in enumerate(self._parts or [])]
        if kinds:
            return [_with_kind(part) for part, _ in paths]
        reader = TaggedParts(out)
        parts = [reader.read(part, path) for part, path in paths]
        self.names |= reader.names
        return parts


def _given(members: Members, name: str) -> bool:
    return name in members and not is_null(members[name])


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_kind(raw: Raw) -> Raw:
    """A part of 0.3 whose kind may be called its type."""
    part = members_of(raw)
    if part is None or "kind" in part or "type" not in part:
        return raw
    part["kind"] = part.pop("type")
    return encode(part)


def _with_task_id(raw: Raw) -> Raw:
    members = members_of(raw)
    if members is None or text_of(members.get("kind")) != "task":
        return raw
    return encode({**members, "taskId": members["id"]})
