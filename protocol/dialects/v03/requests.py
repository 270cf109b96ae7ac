"""The parameters of the 0.3 methods (§7) and what they ask for in 1.0."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from protocol import model
from protocol.dialects.v03.messages import Message, check_message, read_message
from protocol.dialects.v03.push import (
    PushNotificationConfig,
    TaskPushNotificationConfig,
    check_config,
    read_authentication,
    read_config,
)
from protocol.dialects.v03.tables import Role03
from protocol.model import Count, JsonObject, Key, OptionalKey, Wire
from protocol.requests import (
    CancelTaskRequest,
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from protocol.violations import Violations

# 0.3 §7.1.1 leaves open what an absent `blocking` means: the call blocks, as in 1.0 and in the SDK's servers.


class MessageSendConfiguration(Wire, kw_only=True):
    """How the caller wants to be answered (0.3 §7.1.1). A `history_length` of 0 is no limit, unlike in 1.0."""

    accepted_output_modes: list[str] | UnsetType = UNSET
    blocking: bool | UnsetType = UNSET
    history_length: Count | UnsetType = UNSET
    push_notification_config: PushNotificationConfig | UnsetType = UNSET


class MessageSendParams(Wire, kw_only=True):
    """Parameters of message/send and message/stream (0.3 §7.1.1)."""

    message: Message
    configuration: MessageSendConfiguration | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class TaskQueryParams(Wire, kw_only=True):
    """Parameters of tasks/get (0.3 §7.3.1). A `history_length` of 0 is no limit, unlike in 1.0."""

    id: Key
    history_length: Count | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class TaskIdParams(Wire, kw_only=True):
    """Parameters of tasks/cancel, tasks/resubscribe (0.3 §7.4.1) and tasks/pushNotificationConfig/list."""

    id: Key
    metadata: JsonObject | UnsetType = UNSET


class GetConfigParams(Wire, kw_only=True):
    """Parameters of tasks/pushNotificationConfig/get (0.3 §7.6.1). No config id: the first config of the task."""

    id: Key
    push_notification_config_id: OptionalKey = ""
    metadata: JsonObject | UnsetType = UNSET


class DeleteConfigParams(Wire, kw_only=True):
    """Parameters of tasks/pushNotificationConfig/delete (0.3 §7.8.1)."""

    id: Key
    push_notification_config_id: Key
    metadata: JsonObject | UnsetType = UNSET


class NoParams(Wire, kw_only=True):
    """Parameters of agent/getAuthenticatedExtendedCard (0.3 §7.10) and of tasks/list: none."""


def check_send(params: MessageSendParams, out: Violations) -> None:
    """Note what is wrong across the fields. Fields that could not be read may hold anything."""
    check_message(params.message, "message", out)
    if getattr(params.message, "role", None) is Role03.AGENT:
        out.add("message.role", "must be user in a message to an agent")
    config = getattr(params.configuration, "push_notification_config", UNSET)
    check_config(config, "configuration.pushNotificationConfig", out)


def read_send(params: MessageSendParams) -> SendMessageRequest:
    """The 1.0 request of checked parameters."""
    given = params.configuration
    configuration = UNSET if given is UNSET else _read_configuration(given)
    return SendMessageRequest(
        message=read_message(params.message), configuration=configuration, metadata=params.metadata
    )


def _read_configuration(given: MessageSendConfiguration) -> SendMessageConfiguration:
    config: model.TaskPushNotificationConfig | UnsetType = UNSET
    if given.push_notification_config is not UNSET:
        config = read_config(given.push_notification_config)
    return SendMessageConfiguration(
        accepted_output_modes=given.accepted_output_modes or [],
        task_push_notification_config=config,
        history_length=given.history_length or None,
        return_immediately=given.blocking is False,
    )


def read_get(params: TaskQueryParams) -> GetTaskRequest:
    """tasks/get."""
    return GetTaskRequest(id=params.id, history_length=params.history_length or None)


def read_cancel(params: TaskIdParams) -> CancelTaskRequest:
    """tasks/cancel."""
    return CancelTaskRequest(id=params.id, metadata=params.metadata)


def read_subscribe(params: TaskIdParams) -> SubscribeToTaskRequest:
    """tasks/resubscribe."""
    return SubscribeToTaskRequest(id=params.id)


def check_set_config(params: TaskPushNotificationConfig, out: Violations) -> None:
    """Note what is wrong across the fields."""
    check_config(params.push_notification_config, "pushNotificationConfig", out)


def read_set_config(params: TaskPushNotificationConfig) -> CreateTaskPushNotificationConfigRequest:
    """tasks/pushNotificationConfig/set."""
    return create_config(params.task_id, params.push_notification_config)


def create_config(
    task_id: str, config: PushNotificationConfig, config_id: str = ""
) -> CreateTaskPushNotificationConfigRequest:
    """The 1.0 request for a config of a task; an id in the config wins over `config_id`."""
    return CreateTaskPushNotificationConfigRequest(
        task_id=task_id,
        id=config.id or config_id,
        url=config.url,
        token=config.token,
        authentication=read_authentication(config),
    )


def read_get_config(params: GetConfigParams) -> GetTaskPushNotificationConfigRequest:
    """tasks/pushNotificationConfig/get; an empty id means the first config of the task."""
    return GetTaskPushNotificationConfigRequest(task_id=params.id, id=params.push_notification_config_id)


def read_list_configs(params: TaskIdParams) -> ListTaskPushNotificationConfigsRequest:
    """tasks/pushNotificationConfig/list."""
    return ListTaskPushNotificationConfigsRequest(task_id=params.id)


def read_delete_config(params: DeleteConfigParams) -> DeleteTaskPushNotificationConfigRequest:
    """tasks/pushNotificationConfig/delete."""
    return DeleteTaskPushNotificationConfigRequest(task_id=params.id, id=params.push_notification_config_id)


def read_list(params: NoParams) -> ListTasksRequest:
    """tasks/list."""
    return ListTasksRequest()


def read_card(params: NoParams) -> GetExtendedAgentCardRequest:
    """agent/getAuthenticatedExtendedCard."""
    return GetExtendedAgentCardRequest()
