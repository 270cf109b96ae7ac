"""What is right for a whole request: rules that cross fields, and which requests need no second look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, DecodeError, Raw, UnsetType

from protocol.json_text import is_object, quotes, too_deep, value_fault
from protocol.model import Part, Role, Wire
from protocol.requests import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from protocol.scalars import normal_base64
from protocol.violations import Violations


def check_rules(request: Wire, out: Violations) -> None:
    """Note what is wrong across the fields of a request. Fields that could not be read may hold anything."""
    if not isinstance(request, SendMessageRequest):
        return
    if getattr(request.message, "role", None) is Role.AGENT:
        out.add("message.role", "must be ROLE_USER in a message to an agent")
    config = getattr(request.configuration, "task_push_notification_config", UNSET)
    if getattr(config, "task_id", ""):
        out.add("configuration.taskPushNotificationConfig.taskId", "must be empty: the task is the one of the message")


# The functions below look at what a strict decoder accepted. True: the tolerant reader would give an equal struct.
# They may say False of anything: that costs time, nothing else.


def plain_send_message(request: SendMessageRequest, data: bytes | Raw) -> bool:
    """Whether a SendMessageRequest is fine as it stands."""
    message = request.message
    if message.role is not Role.USER or "\0" in message.message_id or "\0" in message.task_id:
        return False
    if "\0" in message.context_id or "\0" in request.tenant or message.reference_task_ids:
        return False
    configuration = request.configuration
    if configuration is not UNSET and configuration.task_push_notification_config is not UNSET:
        return False
    objects = [message.metadata, request.metadata]
    values: list[Raw] = []
    for part in message.parts:
        if part.text is not UNSET and part.raw is UNSET and part.url is UNSET and part.data is part.metadata is UNSET:
            continue
        if not _plain_content(part):
            return False
        objects.append(part.metadata)
        if part.data is not UNSET:
            values.append(part.data)
    return plain_json(objects, values, data) and _plain_members(request, data)


def _plain_members(request: SendMessageRequest, data: bytes | Raw) -> bool:
    """Whether the JSON has as many strings as the request that was read of it: then no member came twice."""
    message, configuration = request.message, request.configuration
    strings = 6
    if message.context_id:
        strings += 2
    if message.task_id:
        strings += 2
    if message.extensions:
        strings += 1 + len(message.extensions)
    for part in message.parts:
        strings += 2
        if part.media_type:
            strings += 2
        if part.filename:
            strings += 2
        if part.data is not UNSET or part.metadata is not UNSET:
            strings += _strings_of(part.data) + _strings_of(part.metadata) - 2 * (part.data is not UNSET)
    if configuration is not UNSET:
        strings += _strings_of_configuration(configuration)
    if request.tenant:
        strings += 2
    if message.metadata is not UNSET or request.metadata is not UNSET:
        strings += _strings_of(message.metadata) + _strings_of(request.metadata)
    return 2 * strings == quotes(bytes(data))


def _strings_of(value: Raw | UnsetType) -> int:
    """Strings of a member that is passed on as it came, with its name."""
    return 0 if value is UNSET else 1 + quotes(bytes(value)) // 2


def _strings_of_configuration(configuration: SendMessageConfiguration) -> int:
    modes = len(configuration.accepted_output_modes)
    return (
        1 + (1 + modes if modes else 0) + (configuration.history_length is not None) + configuration.return_immediately
    )


def _plain_content(part: Part) -> bool:
    contents = (part.text, part.raw, part.url, part.data)
    if contents.count(UNSET) != len(contents) - 1:
        return False
    return part.raw is UNSET or normal_base64(part.raw) == part.raw


def plain_json(objects: list[Raw | UnsetType], values: list[Raw], data: bytes | Raw) -> bool:
    """Whether members of `data` that are passed on as they came are fine; `objects` must be objects."""
    present = [value for value in objects if value is not UNSET]
    if not present and not values:
        return True
    if any(not is_object(value) for value in present) or too_deep(bytes(data)):
        return False
    return all(_plain_value(bytes(value)) for value in present + values)


def _plain_value(text: bytes) -> bool:
    if b"\n" in text or b"\r" in text:
        return False
    try:
        return value_fault(text) is None
    except (DecodeError, RecursionError):
        return False


def plain_task_id(request: GetTaskRequest | SubscribeToTaskRequest, data: bytes | Raw) -> bool:
    """Whether a request that only names a task is fine as it stands."""
    limited = getattr(request, "history_length", None) is not None
    return _plain_ids(request.id, request.tenant) and quotes(bytes(data)) == 4 + 4 * bool(request.tenant) + 2 * limited


def _plain_ids(*ids: str) -> bool:
    return not any("\0" in id for id in ids)


def plain_cancel_task(request: CancelTaskRequest, data: bytes | Raw) -> bool:
    """Whether a CancelTaskRequest is fine as it stands."""
    if request.metadata is not UNSET or not _plain_ids(request.id, request.tenant):
        return False
    return quotes(bytes(data)) == 4 + 4 * bool(request.tenant)


def plain_extended_card(request: GetExtendedAgentCardRequest, data: bytes | Raw) -> bool:
    """Whether a GetExtendedAgentCardRequest is fine as it stands."""
    return _plain_ids(request.tenant) and quotes(bytes(data)) == 4 * bool(request.tenant)


Plain = Callable[[Any, bytes | Raw], bool]

PLAIN: dict[type[Wire], Plain] = {
    SendMessageRequest: plain_send_message,
    GetTaskRequest: plain_task_id,
    SubscribeToTaskRequest: plain_task_id,
    CancelTaskRequest: plain_cancel_task,
    GetExtendedAgentCardRequest: plain_extended_card,
}
