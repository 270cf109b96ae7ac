"""The three forms of 0.3, and which of them an HTTP+JSON request is in."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType

from protocol import model
from protocol.dialects.v03.dialect import NAMES, READINGS, V03, WRITINGS, write_wrapped_event, write_wrapped_sent
from protocol.dialects.v03.proto import push as proto_push
from protocol.dialects.v03.proto import requests as proto_requests
from protocol.dialects.v03.proto import tasks as proto_tasks
from protocol.dialects.v03.reading import Reading
from protocol.requests import CreateTaskPushNotificationConfigRequest, SendMessageRequest

_CREATE = Reading(proto_requests.CreateConfigParams, proto_requests.read_create, proto_requests.check_create)

V0_3 = V03(READINGS, WRITINGS, NAMES, empty=b"null")

V0_3_WRAPPED = V03(
    {**READINGS, CreateTaskPushNotificationConfigRequest: _CREATE},
    {
        **WRITINGS,
        model.SendMessageResponse: write_wrapped_sent,
        model.StreamResponse: write_wrapped_event,
    },
    NAMES,
    empty=b"{}",
)

V0_3_PROTO = V03(
    {
        **READINGS,
        SendMessageRequest: Reading(proto_requests.SendParams, proto_requests.read_send, proto_requests.check_send),
        CreateTaskPushNotificationConfigRequest: _CREATE,
    },
    {
        **WRITINGS,
        model.SendMessageResponse: proto_tasks.write_sent,
        model.StreamResponse: proto_tasks.write_event,
        model.Task: proto_tasks.write_task,
        model.TaskPushNotificationConfig: proto_push.write_task_config,
        model.ListTaskPushNotificationConfigsResponse: proto_push.write_task_configs,
    },
    {
        SendMessageRequest: {
            "configuration.taskPushNotificationConfig": "configuration.pushNotification",
            "message.parts": "message.content",
        },
        CreateTaskPushNotificationConfigRequest: {"": "config.pushNotificationConfig."},
    },
    empty=b"{}",
)


class _Message(Struct, rename="camel"):
    parts: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET


class _Config(Struct, rename="camel"):
    task_id: Raw | UnsetType = UNSET


class _Body(Struct, rename="camel"):
    message: _Message | UnsetType = UNSET
    config: _Config | UnsetType = UNSET
    task_id: Raw | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_Body)


def http_form(body: bytes) -> V03:
    """The form of a request to HTTP+JSON, for its reply too: that of the protobuf definition unless the body has what
    only the other form has."""
    try:
        given = _decoder.decode(body)
    except (DecodeError, RecursionError):
        return V0_3_PROTO
    message, config = given.message, given.config
    if message is not UNSET and message.parts is not UNSET and message.content is UNSET:
        return V0_3_WRAPPED
    if given.task_id is not UNSET or (config is not UNSET and config.task_id is not UNSET):
        return V0_3_WRAPPED
    return V0_3_PROTO
