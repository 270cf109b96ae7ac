"""0.3 as its text has it: `kind` JSON, bare in JSON-RPC and wrapped in HTTP+JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType

from protocol import codec, model
from protocol.card import AgentCard
from protocol.dialects.v03 import requests
from protocol.dialects.v03.card import print_v03
from protocol.dialects.v03.push import TaskPushNotificationConfig, write_task_config, write_task_configs
from protocol.dialects.v03.reading import Reading
from protocol.dialects.v03.requests import MessageSendParams
from protocol.dialects.v03.tasks import write_event, write_sent, write_task, write_tasks
from protocol.errors import Violation
from protocol.model import Wire
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

T = TypeVar("T", bound=Wire)

Readings = Mapping[type[Wire], Reading[Any]]
# From a 1.0 struct to what msgspec encodes.
Writings = Mapping[type[Wire], Callable[[Any], Any]]
# How the paths of fields begin, by how they do in 1.0.
Names = Mapping[type[Wire], Mapping[str, str]]

_encoder = msgspec.json.Encoder()


class V03:
    """One of the forms of `A2A-Version: 0.3`. `empty` is what an operation without a result answers."""

    version = "0.3"

    def __init__(self, readings: Readings, writings: Writings, names: Names, empty: bytes) -> None:
        self._readings = readings
        self._writings = writings
        self._names = names
        self._empty = empty

    def read(self, kind: type[T], data: bytes | Raw | None, path: Mapping[str, str] | None = None) -> T:
        """See `protocol.dialects.Dialect`; `path` has the names of the 0.3 parameters."""
        return self._readings[kind].read(data, path)  # type: ignore[return-value]

    def read_query(self, kind: type[T], pairs: Iterable[tuple[str, str]], path: Mapping[str, str]) -> T:
        """The same from a query string. Raises InvalidParamsError."""
        return self._readings[kind].read_query(pairs, path)  # type: ignore[return-value]

    def write(self, kind: type[Wire], body: bytes) -> bytes:
        """See `protocol.dialects.Dialect`."""
        if kind is Wire:
            return self._empty
        return _encoder.encode(self._writings[kind](codec.load(kind, body)))

    def params(self, kind: type[Wire]) -> type[Wire]:
        """The struct of the parameters that a request is read from."""
        return self._readings[kind].params

    def result(self, kind: type[Wire]) -> Any:
        """The annotation of what a response is written as."""
        return get_type_hints(self._writings[kind])["return"]

    def renamed(self, kind: type[Wire], violations: list[Violation]) -> list[Violation]:
        """See `protocol.dialects.Dialect`."""
        names = self._names.get(kind)
        return violations if names is None else [_renamed(one, names) for one in violations]


def _renamed(violation: Violation, names: Mapping[str, str]) -> Violation:
    field = violation.field
    for new, old in names.items():
        if field.startswith(new):
            field = old + field.removeprefix(new)
    return Violation(field.replace("authentication.scheme", "authentication.schemes[0]"), violation.description)


def _opaque_of_send(params: MessageSendParams) -> list[Raw | UnsetType] | None:
    configuration, message = params.configuration, params.message
    if configuration is not UNSET and configuration.push_notification_config is not UNSET:
        return None
    objects = [params.metadata, message.metadata]
    for part in message.parts:
        if part.file is not UNSET or (part.text is UNSET) is (part.data is UNSET):
            return None
        objects += (part.data, part.metadata)
    return objects


def _opaque_of_task(params: Any) -> list[Raw | UnsetType]:
    return [params.metadata]


def _opaque_of_none(params: Any) -> list[Raw | UnsetType]:
    return []


READINGS: Readings = {
    SendMessageRequest: Reading(MessageSendParams, requests.read_send, requests.check_send, _opaque_of_send),
    GetTaskRequest: Reading(requests.TaskQueryParams, requests.read_get, opaque=_opaque_of_task),
    ListTasksRequest: Reading(requests.NoParams, requests.read_list),
    CancelTaskRequest: Reading(requests.TaskIdParams, requests.read_cancel, opaque=_opaque_of_task),
    SubscribeToTaskRequest: Reading(requests.TaskIdParams, requests.read_subscribe, opaque=_opaque_of_task),
    CreateTaskPushNotificationConfigRequest: Reading(
        TaskPushNotificationConfig, requests.read_set_config, requests.check_set_config
    ),
    GetTaskPushNotificationConfigRequest: Reading(requests.GetConfigParams, requests.read_get_config),
    ListTaskPushNotificationConfigsRequest: Reading(requests.TaskIdParams, requests.read_list_configs),
    DeleteTaskPushNotificationConfigRequest: Reading(requests.DeleteConfigParams, requests.read_delete_config),
    GetExtendedAgentCardRequest: Reading(requests.NoParams, requests.read_card, opaque=_opaque_of_none),
}

WRITINGS: Writings = {
    model.SendMessageResponse: write_sent,
    model.StreamResponse: write_event,
    model.Task: write_task,
    model.ListTasksResponse: write_tasks,
    model.TaskPushNotificationConfig: write_task_config,
    model.ListTaskPushNotificationConfigsResponse: write_task_configs,
    AgentCard: print_v03,
}

NAMES: Names = {
    SendMessageRequest: {"configuration.taskPushNotificationConfig": "configuration.pushNotificationConfig"},
    CreateTaskPushNotificationConfigRequest: {"": "pushNotificationConfig."},
}

_WRAPPERS = {"task": "task", "message": "message", "status-update": "statusUpdate", "artifact-update": "artifactUpdate"}


def _wrap(written: Any) -> dict[str, Any]:
    return {_WRAPPERS[written.kind]: written}


def write_wrapped_sent(response: model.SendMessageResponse) -> dict[str, Any]:
    """The body of `/v1/message:send` (0.3 §7.1)."""
    return _wrap(write_sent(response))


def write_wrapped_event(event: model.StreamResponse) -> dict[str, Any]:
    """One event of `/v1/message:stream` (0.3 §7.2)."""
    return _wrap(write_event(event))
