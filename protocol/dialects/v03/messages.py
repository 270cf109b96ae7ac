"""Messages and their parts in the JSON of 0.3 (§6.4 to §6.6), read and written."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from protocol import model
from protocol.dialects.v03.data import unwrap_data, wrap_data
from protocol.dialects.v03.tables import ROLES, ROLES_1_0, Role03
from protocol.json_text import join
from protocol.model import Base64, JsonObject, Key, OptionalKey, Wire
from protocol.violations import Violations, shown

# Clients print empty lists, so a list that is there but empty differs from none: the reader need not look twice.


class File(Wire, kw_only=True):
    """Content of a file: its bytes in base64, or where it is (0.3 §6.6)."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("bytes", "uri")

    bytes: Base64 | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    mime_type: str = ""
    name: str = ""


class Part(Wire, kw_only=True):
    """A piece of content (0.3 §6.5). A part without `kind` is what it holds."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("text", "file", "data")

    kind: str = ""
    text: str | UnsetType = UNSET
    file: File | UnsetType = UNSET
    data: JsonObject | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class Message(Wire, kw_only=True):
    """One turn of a conversation (0.3 §6.4). `kind` may be left out where only a message can be."""

    kind: str = ""
    message_id: Key
    context_id: OptionalKey = ""
    task_id: OptionalKey = ""
    role: Role03
    parts: Annotated[list[Part], Meta(min_length=1)]
    metadata: JsonObject | UnsetType = UNSET
    extensions: list[str] | UnsetType = UNSET
    reference_task_ids: list[Key] | UnsetType = UNSET


def check_message(message: Message, path: str, out: Violations) -> None:
    """Note what is wrong across the fields of a message. Fields that could not be read may hold anything."""
    _check_kind(message, ("message",), path, out)
    parts = getattr(message, "parts", None)
    for index, part in enumerate(parts if isinstance(parts, list) else ()):
        _check_part(part, f"{path}.parts[{index}]", out)


def _check_part(part: Any, path: str, out: Violations) -> None:
    if _check_kind(part, Part.ONE_OF, path, out) and getattr(part, part.kind) is UNSET:
        out.add(join(path, part.kind), f"is required in a part of kind {part.kind}")


def _check_kind(value: Any, allowed: tuple[str, ...], path: str, out: Violations) -> bool:
    """Whether there is a kind, and one that may be here."""
    kind = getattr(value, "kind", "")
    if not isinstance(kind, str) or not kind:
        return False
    if kind not in allowed:
        out.add(join(path, "kind"), f"must be {' or '.join(allowed)}, got {shown(kind)}")
    return kind in allowed


def read_message(message: Message) -> model.Message:
    """The 1.0 message of a checked 0.3 one."""
    return model.Message(
        message_id=message.message_id,
        context_id=message.context_id,
        task_id=message.task_id,
        role=ROLES_1_0[message.role],
        parts=[_read_part(part) for part in message.parts],
        metadata=message.metadata,
        extensions=message.extensions or [],
        reference_task_ids=message.reference_task_ids or [],
    )


def _read_part(part: Part) -> model.Part:
    if part.text is not UNSET:
        return model.Part(text=part.text, metadata=part.metadata)
    if part.data is not UNSET:
        data, metadata = unwrap_data(part.data, part.metadata)
        return model.Part(data=data, metadata=metadata)
    file = part.file
    assert file is not UNSET
    return model.Part(
        raw=file.bytes, url=file.uri, media_type=file.mime_type, filename=file.name, metadata=part.metadata
    )


def write_message(message: model.Message) -> Message:
    """The 0.3 message of a 1.0 one."""
    return Message(
        kind="message",
        message_id=message.message_id,
        context_id=message.context_id,
        task_id=message.task_id,
        role=ROLES[message.role],
        parts=[write_part(part) for part in message.parts],
        metadata=message.metadata,
        extensions=message.extensions or UNSET,
        reference_task_ids=message.reference_task_ids or UNSET,
    )


def write_part(part: model.Part) -> Part:
    """The 0.3 part of a 1.0 one. Only files have a name and a media type in 0.3."""
    if part.text is not UNSET:
        return Part(kind="text", text=part.text, metadata=part.metadata)
    if part.data is not UNSET:
        data, metadata = wrap_data(part.data, part.metadata)
        return Part(kind="data", data=data, metadata=metadata)
    file = File(bytes=part.raw, uri=part.url, mime_type=part.media_type, name=part.filename)
    return Part(kind="file", file=file, metadata=part.metadata)
