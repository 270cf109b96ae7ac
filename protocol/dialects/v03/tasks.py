"""Tasks and the events of their streams in the JSON of 0.3 (§6.1, §6.2, §6.7, §7.2), written."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from protocol import model
from protocol.dialects.v03.messages import Message, Part, write_message, write_part
from protocol.dialects.v03.tables import FINAL, STATES, State03
from protocol.model import JsonObject, Wire


class Artifact(Wire, kw_only=True):
    """A result of a task (0.3 §6.7)."""

    artifact_id: str
    name: str = ""
    description: str = ""
    parts: list[Part]
    metadata: JsonObject | UnsetType = UNSET
    extensions: list[str] | UnsetType = UNSET


class TaskStatus(Wire, kw_only=True):
    """State of a task (0.3 §6.2)."""

    state: State03
    message: Message | UnsetType = UNSET
    timestamp: str = ""


class Task(Wire, kw_only=True):
    """The unit of work (0.3 §6.1)."""

    kind: str
    id: str
    context_id: str
    status: TaskStatus
    artifacts: list[Artifact] | UnsetType = UNSET
    history: list[Message] | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class TaskStatusUpdateEvent(Wire, kw_only=True):
    """A task has a new status (0.3 §7.2.2). `final`: the stream ends with it."""

    kind: str
    task_id: str
    context_id: str
    status: TaskStatus
    final: bool
    metadata: JsonObject | UnsetType = UNSET


class TaskArtifactUpdateEvent(Wire, kw_only=True):
    """A task has a new artifact, or more of one (0.3 §7.2.3)."""

    kind: str
    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | UnsetType = UNSET


def write_task(task: model.Task) -> Task:
    """The 0.3 task of a 1.0 one."""
    return Task(
        kind="task",
        id=task.id,
        context_id=task.context_id,
        status=_write_status(task.status),
        artifacts=[_write_artifact(artifact) for artifact in task.artifacts] or UNSET,
        history=[write_message(message) for message in task.history] or UNSET,
        metadata=task.metadata,
    )


def write_tasks(page: model.ListTasksResponse) -> list[Task]:
    """The result of tasks/list (0.3 §7.3), which knows no pages."""
    return [write_task(task) for task in page.tasks]


def write_sent(response: model.SendMessageResponse) -> Task | Message:
    """The result of message/send (0.3 §7.1)."""
    if response.task is not UNSET:
        return write_task(response.task)
    assert response.message is not UNSET
    return write_message(response.message)


def write_event(event: model.StreamResponse) -> Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent:
    """One event of a stream (0.3 §7.2.1)."""
    if event.status_update is not UNSET:
        return _write_status_update(event.status_update)
    if event.artifact_update is not UNSET:
        return _write_artifact_update(event.artifact_update)
    if event.task is not UNSET:
        return write_task(event.task)
    assert event.message is not UNSET
    return write_message(event.message)


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
    return TaskStatus(state=STATES[status.state], message=message, timestamp=status.timestamp)


def _write_status_update(event: model.TaskStatusUpdateEvent) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(
        kind="status-update",
        task_id=event.task_id,
        context_id=event.context_id,
        status=_write_status(event.status),
        final=event.status.state in FINAL,
        metadata=event.metadata,
    )


def _write_artifact_update(event: model.TaskArtifactUpdateEvent) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        kind="artifact-update",
        task_id=event.task_id,
        context_id=event.context_id,
        artifact=_write_artifact(event.artifact),
        append=event.append,
        last_chunk=event.last_chunk,
        metadata=event.metadata,
    )
