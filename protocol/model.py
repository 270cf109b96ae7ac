"""The data model of A2A 1.0 (§4.1 to §4.3) as structs whose JSON is ProtoJSON.

Reading goes through `protocol.codec.decode`, which knows the limits written into the types below. A field without a
default is REQUIRED in the specification and always printed. UNSET is "not there"; a `Raw` is JSON exactly as it came
(a view of the received bytes until it is copied).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from protocol.states import TaskState

INT32_MAX = 2**31 - 1
KEY_MAX = 255

# `extra["json"]` tells the reader what a plain type cannot say. A key ends up in an index: short, and without U+0000.
Key = Annotated[str, Meta(min_length=1, max_length=KEY_MAX, extra={"json": "key"})]
OptionalKey = Annotated[str, Meta(max_length=KEY_MAX, extra={"json": "key"})]
Text = Annotated[str, Meta(min_length=1)]
Base64 = Annotated[str, Meta(extra={"json": "base64"})]
Timestamp = Annotated[str, Meta(extra={"json": "timestamp"})]
JsonObject = Annotated[Raw, Meta(extra={"json": "object"})]
Count = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class Wire(Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What all structs of the protocol share."""

    # Fields of which exactly one, or at most one, is set: the oneofs of the protobuf definition.
    ONE_OF: ClassVar[tuple[str, ...]] = ()
    AT_MOST_ONE_OF: ClassVar[tuple[str, ...]] = ()


class Role(StrEnum):
    """Who sent a message (§4.1.5)."""

    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class Part(Wire, kw_only=True):
    """A piece of content (§4.1.6): one of text, raw (base64, standard alphabet, padded), url and data (any JSON)."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("text", "raw", "url", "data")

    text: str | UnsetType = UNSET
    raw: Base64 | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    filename: str = ""
    media_type: str = ""


Parts = Annotated[list[Part], Meta(min_length=1)]


class Message(Wire, kw_only=True):
    """One turn of a conversation (§4.1.4)."""

    message_id: Key
    context_id: OptionalKey = ""
    task_id: OptionalKey = ""
    role: Role
    parts: Parts
    metadata: JsonObject | UnsetType = UNSET
    extensions: list[str] = field(default_factory=list)
    reference_task_ids: list[Key] = field(default_factory=list)


class Artifact(Wire, kw_only=True):
    """A result of a task (§4.1.7)."""

    artifact_id: Key
    name: str = ""
    description: str = ""
    parts: Parts
    metadata: JsonObject | UnsetType = UNSET
    extensions: list[str] = field(default_factory=list)


class TaskStatus(Wire, kw_only=True):
    """State of a task, with what the agent says about it and when it was recorded, in UTC (§4.1.2)."""

    state: TaskState
    message: Message | UnsetType = UNSET
    timestamp: Timestamp = ""


class Task(Wire, kw_only=True):
    """The unit of work (§4.1.1)."""

    id: Key
    context_id: OptionalKey = ""
    status: TaskStatus
    artifacts: list[Artifact] = field(default_factory=list)
    history: list[Message] = field(default_factory=list)
    metadata: JsonObject | UnsetType = UNSET


class TaskStatusUpdateEvent(Wire, kw_only=True):
    """A task has a new status (§4.2.1)."""

    task_id: Key
    context_id: Key
    status: TaskStatus
    metadata: JsonObject | UnsetType = UNSET


class TaskArtifactUpdateEvent(Wire, kw_only=True):
    """A task has a new artifact, or more of one (§4.2.2)."""

    task_id: Key
    context_id: Key
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | UnsetType = UNSET


class AuthenticationInfo(Wire, kw_only=True):
    """How a webhook wants to be called (§4.3.2)."""

    scheme: Text
    credentials: str = ""


class TaskPushNotificationConfig(Wire, kw_only=True):
    """Where to report the changes of a task (§4.3.1)."""

    tenant: OptionalKey = ""
    id: OptionalKey = ""
    task_id: OptionalKey = ""
    url: Text
    token: str = ""
    authentication: AuthenticationInfo | UnsetType = UNSET


class SendMessageResponse(Wire, kw_only=True):
    """A task, or a message when the agent answered without one (§3.1.1)."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("task", "message")

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET


class StreamResponse(Wire, kw_only=True):
    """One event of a stream, and the body of a push notification (§3.2.3, §4.3.3)."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("task", "message", "status_update", "artifact_update")

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET
    status_update: TaskStatusUpdateEvent | UnsetType = UNSET
    artifact_update: TaskArtifactUpdateEvent | UnsetType = UNSET


class ListTasksResponse(Wire, kw_only=True):
    """A page of tasks (§3.1.4). `next_page_token` is empty on the last one; `total_size` counts all pages."""

    tasks: list[Task]
    next_page_token: str
    page_size: Count
    total_size: Count


class ListTaskPushNotificationConfigsResponse(Wire, kw_only=True):
    """A page of push notification configs (§3.1.9)."""

    configs: list[TaskPushNotificationConfig]
    next_page_token: str = ""
