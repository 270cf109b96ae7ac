"""Tasks and the events of their streams in the JSON of the 0.3 protobuf definition, written."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from protocol import model
from protocol.dialects.v03.proto.messages import Message, Part, write_message, write_part
from protocol.dialects.v03.tables import FINAL, PROTO_STATES, ProtoState
from protocol.model import JsonObject, Wire


class Artifact(Wire, kw_only=True):
    """A result of a task. Its parts are called so, unlike those of a message."""

    artifact_id: str
    name: str = ""
    description: str = ""
    parts: list[Part]
    metadata: JsonObject | UnsetType = UNSET
    extensions: list[str] | UnsetType = UNSET


class TaskStatus(Wire, kw_only=True):
    """State of a task."""

    state: ProtoState
    message: Message | UnsetType = UNSET
    timestamp: str = ""


class Task(Wire, kw_only=True):
    """The unit of work."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: list[Artifact] | UnsetType = UNSET
    history: list[Message] | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class TaskStatusUpdateEvent(Wire, kw_only=True):
    """A task has a new status. `final`: the stream ends with it."""

    task_id: str
    context_id: str
    status: TaskStatus
    final: bool
    metadata: JsonObject | UnsetType = UNSET


class TaskArtifactUpdateEvent(Wire, kw_only=True):
    """A task has a new artifact, or more of one."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | UnsetType = UNSET


def write_task(task: model.Task) -> Task:
    """The 0.3 task of a 1.0 one."""
    return Task(
        id=task.id,
        context_id=task.context_id,
        status=_write_status(task.status),
        artifacts=[_write_artifact(artifact) for artifact in task.artifacts] or UNSET,
        history=[write_message(message) for message in task.history] or UNSET,
        metadata=task.metadata,
    )


def write_sent(response: model.SendMessageResponse) -> dict[str, Any]:
    """SendMessageResponse."""
    if response.task is not UNSET:
        return {"task": write_task(response.task)}
    assert response.message is not UNSET
    return {"message": write_message(response.message)}


def write_event(event: model.StreamResponse) -> dict[str, Any]:
    """StreamResponse."""
    if event.status_update is not UNSET:
        return {"statusUpdate": _write_status_update(event.status_update)}
    if event.artifact_update is not UNSET:
        return {"artifactUpdate": _write_artifact_update(event.artifact_update)}
    return write_sent(model.SendMessageResponse(task=event.task, message=event.message))


def _write_artifact(artifact: model.Artifact) -> Artifact:
    return Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        description=artifact.description,
        parts=[write_part(part) for part in artifact.parts],
        metadata=artifact.metadata,
        extensions=artifact.extensions or UNSET,
    )


def _write_status(status: model.TaskStatus) -> TaskStatus:
    message = UNSET if status.message is UNSET else write_message(status.message)
    return TaskStatus(state=PROTO_STATES[status.state], message=message, timestamp=status.timestamp)


def _write_status_update(event: model.TaskStatusUpdateEvent) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(
        task_id=event.task_id,
        context_id=event.context_id,
        status=_write_status(event.status),
        final=event.status.state in FINAL,
        metadata=event.metadata,
    )


def _write_artifact_update(event: model.TaskArtifactUpdateEvent) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        task_id=event.task_id,
        context_id=event.context_id,
        artifact=_write_artifact(event.artifact),
        append=event.append,
        last_chunk=event.last_chunk,
        metadata=event.metadata,
    )
