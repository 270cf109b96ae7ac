"""The operations of an agent (§3.1) as the bindings call them, and the JSON-RPC methods that name them (§9.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from a2a_host.bindings.cards import extended_card
from agents.registry import AgentEntry
from protocol.card import AgentCard
from protocol.codec import encode
from protocol.dialects import Dialect
from protocol.dialects.v03 import V0_3
from protocol.dialects.v1 import V1_0
from protocol.errors import (
    ExtendedAgentCardNotConfiguredError,
    MethodNotFoundError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from protocol.model import (
    ListTaskPushNotificationConfigsResponse,
    ListTasksResponse,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskPushNotificationConfig,
    Wire,
)
from protocol.requests import (
    CancelTaskRequest,
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from tasks_app import operations
from tasks_app.operations import Call, TaskStream


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: `run` gives the 1.0 JSON of a `response`, `stream` frames that hold a `response` each.

    `check` raises what the agent's capabilities say against it, before its request is looked at (§3.3.4).
    """

    name: str
    request: type[Wire]
    response: type[Wire]
    run: Callable[[Call, Any], Awaitable[bytes]] | None = None
    stream: Callable[[Call, Any], Awaitable[TaskStream]] | None = None
    check: Callable[[AgentEntry], None] | None = None


class Method(NamedTuple):
    """A JSON-RPC method: an operation in a version of the protocol."""

    dialect: Dialect
    operation: Operation


async def _send_message(call: Call, request: SendMessageRequest) -> bytes:
    result = await operations.send_message(call, request)
    return await operations.with_contents(call, SendMessageResponse, result.payload())


async def _get_task(call: Call, request: GetTaskRequest) -> bytes:
    task = await operations.get_task(call, request)
    return await operations.rendered(call, task, request.history_length, strict=True)


async def _list_tasks(call: Call, request: ListTasksRequest) -> bytes:
    page = await operations.list_tasks(call, request)
    return await operations.with_contents(call, ListTasksResponse, page.payload())


async def _cancel_task(call: Call, request: CancelTaskRequest) -> bytes:
    return await operations.rendered(call, await operations.cancel_task(call, request))


async def _create_push_config(call: Call, request: CreateTaskPushNotificationConfigRequest) -> bytes:
    return encode((await operations.create_push_config(call, request)).shown())


async def _get_push_config(call: Call, request: GetTaskPushNotificationConfigRequest) -> bytes:
    return encode((await operations.get_push_config(call, request)).shown())


async def _list_push_configs(call: Call, request: ListTaskPushNotificationConfigsRequest) -> bytes:
    return (await operations.list_push_configs(call, request)).payload()


async def _delete_push_config(call: Call, request: DeleteTaskPushNotificationConfigRequest) -> bytes:
    await operations.delete_push_config(call, request)
    return b"{}"


def _check_push(entry: AgentEntry) -> None:
    if not entry.push_notifications:
        raise PushNotificationNotSupportedError


async def _get_extended_card(call: Call, request: GetExtendedAgentCardRequest) -> bytes:
    return extended_card(call)


def _check_extended_card(entry: AgentEntry) -> None:
    """§3.3.4."""
    if not entry.extended_card:
        raise UnsupportedOperationError("The agent has no extended card.")
    if not entry.has_extended_card:
        raise ExtendedAgentCardNotConfiguredError


def _check_authenticated_extended_card(entry: AgentEntry) -> None:
    """0.3 §8.2 has one error for an agent without the card."""
    try:
        _check_extended_card(entry)
    except UnsupportedOperationError:
        raise ExtendedAgentCardNotConfiguredError from None


SEND_MESSAGE = Operation("SendMessage", SendMessageRequest, SendMessageResponse, run=_send_message)
SEND_STREAMING_MESSAGE = Operation(
    "SendStreamingMessage", SendMessageRequest, StreamResponse, stream=operations.stream_message
)
GET_TASK = Operation("GetTask", GetTaskRequest, Task, run=_get_task)
LIST_TASKS = Operation("ListTasks", ListTasksRequest, ListTasksResponse, run=_list_tasks)
CANCEL_TASK = Operation("CancelTask", CancelTaskRequest, Task, run=_cancel_task)
SUBSCRIBE_TO_TASK = Operation(
    "SubscribeToTask", SubscribeToTaskRequest, StreamResponse, stream=operations.subscribe_to_task
)
CREATE_PUSH_CONFIG = Operation(
    "CreateTaskPushNotificationConfig",
    CreateTaskPushNotificationConfigRequest,
    TaskPushNotificationConfig,
    run=_create_push_config,
    check=_check_push,
)
GET_PUSH_CONFIG = Operation(
    "GetTaskPushNotificationConfig",
    GetTaskPushNotificationConfigRequest,
    TaskPushNotificationConfig,
    run=_get_push_config,
    check=_check_push,
)
LIST_PUSH_CONFIGS = Operation(
    "ListTaskPushNotificationConfigs",
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    run=_list_push_configs,
    check=_check_push,
)
DELETE_PUSH_CONFIG = Operation(
    "DeleteTaskPushNotificationConfig",
    DeleteTaskPushNotificationConfigRequest,
    Wire,
    run=_delete_push_config,
    check=_check_push,
)
GET_EXTENDED_CARD = Operation(
    "GetExtendedAgentCard",
    GetExtendedAgentCardRequest,
    AgentCard,
    run=_get_extended_card,
    check=_check_extended_card,
)

OPERATIONS = (
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    GET_TASK,
    LIST_TASKS,
    CANCEL_TASK,
    SUBSCRIBE_TO_TASK,
    CREATE_PUSH_CONFIG,
    GET_PUSH_CONFIG,
    LIST_PUSH_CONFIGS,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_CARD,
)

RESUBSCRIBE_TO_TASK = replace(SUBSCRIBE_TO_TASK, stream=operations.resubscribe_to_task)
GET_AUTHENTICATED_EXTENDED_CARD = replace(GET_EXTENDED_CARD, check=_check_authenticated_extended_card)

METHODS: dict[str, Method] = {operation.name: Method(V1_0, operation) for operation in OPERATIONS} | {
    "message/send": Method(V0_3, SEND_MESSAGE),
    "message/stream": Method(V0_3, SEND_STREAMING_MESSAGE),
    "tasks/get": Method(V0_3, GET_TASK),
    "tasks/cancel": Method(V0_3, CANCEL_TASK),
    "tasks/resubscribe": Method(V0_3, RESUBSCRIBE_TO_TASK),
    "tasks/pushNotificationConfig/set": Method(V0_3, CREATE_PUSH_CONFIG),
    "tasks/pushNotificationConfig/get": Method(V0_3, GET_PUSH_CONFIG),
    "tasks/pushNotificationConfig/list": Method(V0_3, LIST_PUSH_CONFIGS),
    "tasks/pushNotificationConfig/delete": Method(V0_3, DELETE_PUSH_CONFIG),
    "agent/getAuthenticatedExtendedCard": Method(V0_3, GET_AUTHENTICATED_EXTENDED_CARD),
}
"""Methods by their name. No two versions share one, so the name alone says which version a request is in."""


def find_method(name: str, version: str | None, served: Collection[str]) -> Method:
    """The method of a request. A version that was named wins over that of the method's name.

    Raises MethodNotFoundError, VersionNotSupportedError if the version is none of those `served`.
    """
    method = METHODS.get(name)
    if method is None or (version is not None and method.dialect.version != version):
        raise MethodNotFoundError(name)
    if method.dialect.version not in served:
        raise VersionNotSupportedError(method.dialect.version, served)
    return method
