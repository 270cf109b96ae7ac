"""0.3 against the compatibility layer of the Python SDK, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2, conversions, proto_utils, types
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, MessageToJson, Parse, ParseDict
from google.protobuf.message import Message
from hypothesis import assume, given, settings
from msgspec import json

from protocol import model
from protocol.codec import decode, encode
from protocol.dialects.v03 import V0_3, V0_3_PROTO, V0_3_WRAPPED
from protocol.requests import CreateTaskPushNotificationConfigRequest, GetTaskRequest, SendMessageRequest
from tests.protocol.strategies import messages

OPAQUE = ("data", "metadata")
EMPTY: tuple[Any, ...] = (None, {}, [], False, "")
CONVERSIONS: dict[str, Any] = {
    "Task": (conversions.to_compat_task, proto_utils.ToProto.task),
    "TaskPushNotificationConfig": (
        conversions.to_compat_task_push_notification_config,
        proto_utils.ToProto.task_push_notification_config,
    ),
}


def stored(message: Message) -> bytes:
    """What an operation gives for a 1.0 message."""
    kind = getattr(model, message.DESCRIPTOR.name)
    return encode(decode(kind, MessageToJson(message).encode()))


def pruned(value: Any) -> Any:
    """JSON without members that say nothing, which only one side prints; data is left as it is."""
    if isinstance(value, list):
        return [pruned(inner) for inner in value]
    if isinstance(value, dict):
        short = {key: inner if key in OPAQUE else pruned(inner) for key, inner in value.items()}
        return {key: inner for key, inner in short.items() if inner not in EMPTY}
    return value


def as_json(message: Message) -> Any:
    """The JSON of a protobuf message."""
    return pruned(MessageToDict(message))


def dumped(value: Any) -> Any:
    """The JSON of one of the SDK's 0.3 objects."""
    return pruned(value.model_dump(mode="json", by_alias=True))


@pytest.mark.parametrize("name", ["Task", "TaskPushNotificationConfig"])
def test_we_write_what_the_sdk_writes(name: str) -> None:
    to_compat, to_proto = CONVERSIONS[name]
    descriptor = a2a_pb2.DESCRIPTOR.message_types_by_name[name]

    @given(messages(descriptor))
    @settings(max_examples=50, deadline=None)
    def run(message: Any) -> None:
        message.id = message.id or "c"  # a stored config has an id
        compat, body = to_compat(message), stored(message)
        assert pruned(json.decode(V0_3.write(getattr(model, name), body))) == dumped(compat)
        expected = to_proto(compat)
        written = Parse(V0_3_PROTO.write(getattr(model, name), body), type(expected)())
        assert as_json(written) == as_json(expected)

    run()


@given(messages(a2a_pb2.StreamResponse.DESCRIPTOR))
@settings(max_examples=50, deadline=None)
def test_we_stream_what_the_sdk_streams(message: Any) -> None:
    compat, body = conversions.to_compat_stream_response(message, "1").result, stored(message)
    if isinstance(compat, types.TaskStatusUpdateEvent):
        # The SDK knows no last event but a terminal one; our streams end at input-required too.
        compat.final = compat.final or compat.status.state is types.TaskState.input_required
    bare = json.decode(V0_3.write(model.StreamResponse, body))
    assert pruned(bare) == dumped(compat)
    (wrapped,) = json.decode(V0_3_WRAPPED.write(model.StreamResponse, body)).values()
    assert wrapped == bare
    expected = proto_utils.ToProto.stream_response(compat)
    written = Parse(V0_3_PROTO.write(model.StreamResponse, body), a2a_v0_3_pb2.StreamResponse())
    assert as_json(written) == as_json(expected)


@given(messages(a2a_pb2.SendMessageRequest.DESCRIPTOR))
@settings(max_examples=50, deadline=None)
def test_we_read_what_the_sdk_sends(message: Any) -> None:
    assume(not any(part.HasField("data") and part.data.HasField("null_value") for part in message.message.parts))
    request = conversions.to_compat_send_message_request(message, "1")
    expected = conversions.to_core_send_message_request(request)
    for empty_members in (True, False):
        sent = request.params.model_dump(mode="json", by_alias=True)
        body = json.encode(sent if empty_members else without_nulls(sent))
        assert as_json(as_protobuf(V0_3.read(SendMessageRequest, body))) == as_json(expected)
        assert V0_3_WRAPPED.read(SendMessageRequest, body) == V0_3.read(SendMessageRequest, body)


@given(messages(a2a_pb2.SendMessageRequest.DESCRIPTOR))
@settings(max_examples=50, deadline=None)
def test_we_read_what_the_sdk_sends_over_http(message: Any) -> None:
    assume(not any(part.HasField("data") and part.data.HasField("null_value") for part in message.message.parts))
    params = conversions.to_compat_send_message_request(message, "1").params
    proto = a2a_v0_3_pb2.SendMessageRequest(
        request=proto_utils.ToProto.message(params.message),
        configuration=proto_utils.ToProto.message_send_configuration(params.configuration),
        metadata=proto_utils.ToProto.metadata(params.metadata),
    )
    read_back = proto_utils.FromProto.message_send_params(proto)
    request = types.SendMessageRequest(id="1", params=read_back)
    expected = conversions.to_core_send_message_request(request)
    for proto_names in (True, False):
        body = json.encode(MessageToDict(proto, preserving_proto_field_name=proto_names))
        assert as_json(as_protobuf(V0_3_PROTO.read(SendMessageRequest, body))) == as_json(expected)


@given(messages(a2a_pb2.TaskPushNotificationConfig.DESCRIPTOR))
@settings(max_examples=50, deadline=None)
def test_we_read_configs_of_the_sdk(message: Any) -> None:
    message.task_id = message.task_id or "t"
    request = conversions.to_compat_create_task_push_notification_config_request(message, "1")
    expected = conversions.to_core_create_task_push_notification_config_request(request)
    kind = CreateTaskPushNotificationConfigRequest
    read = V0_3.read(kind, request.params.model_dump_json(by_alias=True).encode())
    assert ParseDict(json.decode(encode(read)), a2a_pb2.TaskPushNotificationConfig()) == expected
    proto = a2a_v0_3_pb2.CreateTaskPushNotificationConfigRequest(
        parent=f"tasks/{message.task_id}",
        config_id=message.id,
        config=proto_utils.ToProto.task_push_notification_config(request.params),
    )
    wrapped = V0_3_PROTO.read(kind, MessageToJson(proto).encode(), {"taskId": message.task_id})
    assert wrapped == read


@pytest.mark.parametrize(("given_length", "length"), [(None, None), (0, None), (3, 3)])
def test_a_history_length_of_0_is_no_limit(given_length: int | None, length: int | None) -> None:
    params = types.TaskQueryParams(id="t", history_length=given_length)
    request = V0_3.read(GetTaskRequest, params.model_dump_json(by_alias=True).encode())
    assert request == GetTaskRequest(id="t", history_length=length)


def as_protobuf(request: SendMessageRequest) -> Any:
    """The protobuf message of what was read."""
    return ParseDict(json.decode(encode(request)), a2a_pb2.SendMessageRequest())


def without_nulls(params: Any) -> Any:
    """Parameters without the members that are null, outside of data and metadata."""
    if isinstance(params, list):
        return [without_nulls(inner) for inner in params]
    if isinstance(params, dict):
        present = {key: inner for key, inner in params.items() if inner is not None}
        return {key: inner if key in OPAQUE else without_nulls(inner) for key, inner in present.items()}
    return params
