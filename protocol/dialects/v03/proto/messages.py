"""Messages and their parts in the JSON of the 0.3 protobuf definition: `content`, roles and states in capitals."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, UnsetType

from protocol import model
from protocol.dialects.v03.data import unwrap_data, unwrap_file, wrap_data, wrap_file
from protocol.model import Base64, JsonObject, Key, OptionalKey, Role, Wire


class File(Wire, kw_only=True):
    """Content of a file. `file_with_bytes` is base64 of base64 text, see `protocol.dialects.v03.data`."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("file_with_uri", "file_with_bytes")

    file_with_uri: str | UnsetType = UNSET
    file_with_bytes: Base64 | UnsetType = UNSET
    mime_type: str = ""
    name: str = ""


class Data(Wire, kw_only=True):
    """Content that is a JSON object."""

    data: JsonObject


class Part(Wire, kw_only=True):
    """A piece of content."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("text", "file", "data")

    text: str | UnsetType = UNSET
    file: File | UnsetType = UNSET
    data: Data | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class Message(Wire, kw_only=True):
    """One turn of a conversation. It cannot refer to other tasks."""

    message_id: Key
    context_id: OptionalKey = ""
    task_id: OptionalKey = ""
    role: Role
    content: Annotated[list[Part], Meta(min_length=1)]
    metadata: JsonObject | UnsetType = UNSET
    extensions: list[str] | UnsetType = UNSET


def read_message(message: Message) -> model.Message:
    """The 1.0 message."""
    return model.Message(
        message_id=message.message_id,
        context_id=message.context_id,
        task_id=message.task_id,
        role=message.role,
        parts=[_read_part(part) for part in message.content],
        metadata=message.metadata,
        extensions=message.extensions or [],
    )


def _read_part(part: Part) -> model.Part:
    if part.text is not UNSET:
        return model.Part(text=part.text, metadata=part.metadata)
    if part.data is not UNSET:
        data, metadata = unwrap_data(part.data.data, part.metadata)
        return model.Part(data=data, metadata=metadata)
    file = part.file
    assert file is not UNSET
    given = file.file_with_bytes
    return model.Part(
        raw=UNSET if given is UNSET else unwrap_file(given),
        url=file.file_with_uri,
        media_type=file.mime_type,
        filename=file.name,
        metadata=part.metadata,
    )


def write_message(message: model.Message) -> Message:
    """The 0.3 message of a 1.0 one."""
    return Message(
        message_id=message.message_id,
        context_id=message.context_id,
        task_id=message.task_id,
        role=message.role,
        content=[write_part(part) for part in message.parts],
        metadata=message.metadata,
        extensions=message.extensions or UNSET,
    )


def write_part(part: model.Part) -> Part:
    """The 0.3 part of a 1.0 one. Only files have a name and a media type in 0.3."""
    if part.text is not UNSET:
        return Part(text=part.text, metadata=part.metadata)
    if part.data is not UNSET:
        data, metadata = wrap_data(part.data, part.metadata)
        return Part(data=Data(data=data), metadata=metadata)
    file = File(
        file_with_bytes=UNSET if part.raw is UNSET else wrap_file(part.raw),
        file_with_uri=part.url,
        mime_type=part.media_type,
        name=part.filename,
    )
    return Part(file=file, metadata=part.metadata)
