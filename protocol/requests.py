"""The parameters of the operations (§3.1, §3.2)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from protocol.model import Count, JsonObject, Key, Message, OptionalKey, TaskPushNotificationConfig, Wire
from protocol.states import TaskState

PAGE_SIZE_MAX = 100

PageSize = Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX)]
Moment = Annotated[datetime, Meta(tz=True)]


class SendMessageConfiguration(Wire, kw_only=True):
    """How the caller wants to be answered (§3.2.2). `history_length` None: no limit of the caller's (§3.2.4)."""

    accepted_output_modes: list[str] = field(default_factory=list)
    task_push_notification_config: TaskPushNotificationConfig | UnsetType = UNSET
    history_length: Count | None = None
    return_immediately: bool = False


class SendMessageRequest(Wire, kw_only=True):
    """Parameters of SendMessage and SendStreamingMessage (§3.2.1)."""

    tenant: OptionalKey = ""
    message: Message
    configuration: SendMessageConfiguration | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class GetTaskRequest(Wire, kw_only=True):
    """Parameters of GetTask (§3.1.3)."""

    tenant: OptionalKey = ""
    id: Key
    history_length: Count | None = None


class ListTasksRequest(Wire, kw_only=True):
    """Parameters of ListTasks (§3.1.4). `status_timestamp_after` is aware and in UTC; tasks at that very time match."""

    tenant: OptionalKey = ""
    context_id: OptionalKey = ""
    status: TaskState | None = None
    page_size: PageSize | None = None
    page_token: str = ""
    history_length: Count | None = None
    status_timestamp_after: Moment | None = None
    include_artifacts: bool = False


class CancelTaskRequest(Wire, kw_only=True):
    """Parameters of CancelTask (§3.1.5)."""

    tenant: OptionalKey = ""
    id: Key
    metadata: JsonObject | UnsetType = UNSET


class SubscribeToTaskRequest(Wire, kw_only=True):
    """Parameters of SubscribeToTask (§3.1.6)."""

    tenant: OptionalKey = ""
    id: Key


class CreateTaskPushNotificationConfigRequest(TaskPushNotificationConfig, kw_only=True):
    """Parameters of CreateTaskPushNotificationConfig (§3.1.7): a config that names its task."""

    task_id: Key


class GetTaskPushNotificationConfigRequest(Wire, kw_only=True):
    """Parameters of GetTaskPushNotificationConfig (§3.1.8)."""

    tenant: OptionalKey = ""
    task_id: Key
    id: Key


class ListTaskPushNotificationConfigsRequest(Wire, kw_only=True):
    """Parameters of ListTaskPushNotificationConfigs (§3.1.9). A `page_size` of 0 leaves it to the server."""

    tenant: OptionalKey = ""
    task_id: Key
    page_size: Count = 0
    page_token: str = ""


class DeleteTaskPushNotificationConfigRequest(Wire, kw_only=True):
    """Parameters of DeleteTaskPushNotificationConfig (§3.1.10)."""

    tenant: OptionalKey = ""
    task_id: Key
    id: Key


class GetExtendedAgentCardRequest(Wire, kw_only=True):
    """Parameters of GetExtendedAgentCard (§3.1.11)."""

    tenant: OptionalKey = ""
