"""Our structs as the SDK's protobuf messages, by hand: json_format costs 20 times as much."""

from __future__ import annotations

from base64 import b64decode

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct, Value
from msgspec import UNSET, Raw, UnsetType

from protocol.codec import encode
from protocol.model import Artifact, Message, Part, Task, TaskStatus
from protocol.requests import SendMessageRequest
from protocol.stored_part import Held


def write_request(request: SendMessageRequest) -> pb.SendMessageRequest:
    """SendMessageRequest (§3.1.1)."""
    written = pb.SendMessageRequest(
        tenant=request.tenant, message=write_message(request.message), metadata=write_struct(request.metadata)
    )
    if request.configuration is not UNSET:
        json_format.Parse(encode(request.configuration), written.configuration)
    return written


def write_task(task: Task) -> pb.Task:
    """Task (§4.1.1)."""
    return pb.Task(
        id=task.id,
        context_id=task.context_id,
        status=write_status(task.status),
        artifacts=[write_artifact(artifact) for artifact in task.artifacts],
        history=[write_message(message) for message in task.history],
        metadata=write_struct(task.metadata),
    )


def write_status(status: TaskStatus) -> pb.TaskStatus:
    """TaskStatus (§4.1.2)."""
    message = None if status.message is UNSET else write_message(status.message)
    written = pb.TaskStatus(state=status.state.value, message=message)
    if status.timestamp:
        written.timestamp.FromJsonString(status.timestamp)
    return written


def write_message(message: Message) -> pb.Message:
    """Message (§4.1.4)."""
    return pb.Message(
        message_id=message.message_id,
        context_id=message.context_id,
        task_id=message.task_id,
        role=message.role.value,
        parts=[write_part(part) for part in message.parts],
        metadata=write_struct(message.metadata),
        extensions=message.extensions,
        reference_task_ids=message.reference_task_ids,
    )


def write_artifact(artifact: Artifact) -> pb.Artifact:
    """Artifact (§4.1.7)."""
    return pb.Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        description=artifact.description,
        parts=[write_part(part) for part in artifact.parts],
        metadata=write_struct(artifact.metadata),
        extensions=artifact.extensions,
    )


def write_part(part: Part) -> pb.Part:
    """Part (§4.1.6)."""
    written = pb.Part(metadata=write_struct(part.metadata), filename=part.filename, media_type=part.media_type)
    if part.text is not UNSET:
        written.text = part.text
    elif isinstance(part.raw, Held):
        written.raw = b64decode(part.raw.base64) if part.raw.is_base64 else bytes(part.raw.content)
    elif part.raw is not UNSET:
        written.raw = b64decode(part.raw)
    elif part.url is not UNSET:
        written.url = part.url
    elif part.data is not UNSET:
        written.data.CopyFrom(json_format.Parse(bytes(part.data), Value()))
    return written


def write_struct(metadata: Raw | UnsetType) -> Struct | None:
    """Metadata as a Struct; its numbers become doubles, as everywhere in protobuf."""
    return None if metadata is UNSET else json_format.Parse(bytes(metadata), Struct())
