"""The SDK's protobuf messages as our structs, by hand. What no struct can hold raises InvalidAgentResponseError."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import NoReturn

import msgspec
from a2a.types import a2a_pb2 as pb
from django.conf import settings
from google.protobuf.struct_pb2 import Struct
from msgspec import UNSET, Raw, UnsetType

from protocol.errors import InvalidAgentResponseError
from protocol.ids import new_id
from protocol.model import KEY_MAX, Artifact, Message, Part, Role
from protocol.protobuf import struct_json, value_json
from protocol.states import TaskState
from protocol.stored_part import Held


def read_state(number: int) -> TaskState:
    """A state that an agent may report: any but UNSPECIFIED."""
    try:
        state = TaskState.from_number(number)
    except KeyError:
        state = TaskState.UNSPECIFIED
    if state is TaskState.UNSPECIFIED:
        raise InvalidAgentResponseError(f"The agent reported the unknown task state {number}.")
    return state


def read_message(message: pb.Message, task_id: str, context_id: str) -> Message:
    """A message of the agent in a task and context, whatever ids it was made with. A missing id is made up."""
    return Message(
        message_id=_read_key(message.message_id, "messageId") if message.message_id else new_id(),
        role=Role.USER if message.role == pb.Role.ROLE_USER else Role.AGENT,
        parts=read_parts(message.parts, "message"),
        context_id=context_id,
        task_id=task_id,
        metadata=_read_metadata(message),
        extensions=list(message.extensions),
        reference_task_ids=list(message.reference_task_ids),
    )


def read_artifact(artifact: pb.Artifact) -> Artifact:
    """An artifact or a chunk of one."""
    return Artifact(
        artifact_id=_read_key(artifact.artifact_id, "artifactId"),
        parts=read_parts(artifact.parts, "artifact"),
        name=artifact.name,
        description=artifact.description,
        metadata=_read_metadata(artifact),
        extensions=list(artifact.extensions),
    )


def read_part(part: pb.Part) -> Part:
    """A part with its one content member (§4.1.6)."""
    read = Part(
        metadata=read_struct(part.metadata) if part.HasField("metadata") else UNSET,
        filename=part.filename,
        media_type=part.media_type,
    )
    match part.WhichOneof("content"):
        case "text":
            read.text = part.text
        case "raw":
            content = part.raw
            big = len(content) > settings.STORED_PART_BYTES  # it will be stored as it is
            read.raw = Held(content) if big else b64encode(content).decode()
        case "url":
            read.url = part.url
        case "data":
            read.data = Raw(msgspec.json.encode(value_json(part.data, _unfit)))
        case _:
            raise InvalidAgentResponseError("The agent sent a part without content.")
    return read


def read_struct(struct: Struct) -> Raw:
    """A Struct as JSON text. Whole numbers have no `.0`."""
    return Raw(msgspec.json.encode(struct_json(struct, _unfit)))


def _read_key(key: str, name: str) -> str:
    """An id that ends up in an index."""
    if not 0 < len(key) <= KEY_MAX or "\x00" in key:
        raise InvalidAgentResponseError(f"The agent sent a bad {name}: it is empty, too long or holds U+0000.")
    return key


def read_parts(parts: Sequence[pb.Part], where: str) -> list[Part]:
    if not parts:
        raise InvalidAgentResponseError(f"The agent sent {where} parts that are empty.")
    return [read_part(part) for part in parts]


def _read_metadata(holder: pb.Message | pb.Artifact) -> Raw | UnsetType:
    return read_struct(holder.metadata) if holder.HasField("metadata") else UNSET


def _unfit() -> NoReturn:
    raise InvalidAgentResponseError("The agent sent a number that JSON cannot hold.")
