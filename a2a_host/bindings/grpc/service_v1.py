"""The service of A2A 1.0: `lf.a2a.v1.A2AService`. Its messages are the ProtoJSON of the host, field by field."""

from __future__ import annotations

from a2a.types import a2a_pb2 as pb
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

from a2a_host.bindings import methods
from a2a_host.bindings.grpc.convert_in import json_bytes
from a2a_host.bindings.grpc.convert_out import message_of
from a2a_host.bindings.grpc.service import Rpc
from a2a_host.bindings.methods import Operation

NAME = "lf.a2a.v1.A2AService"
VERSION = "1.0"


def _rpc(operation: Operation, request: type[Message], response: type[Message]) -> Rpc:
    def write(body: bytes) -> bytes:
        return message_of(response, body).SerializeToString()

    return Rpc(operation, request, json_bytes, (lambda _: b"") if response is Empty else write)


METHODS: dict[str, Rpc] = {
    rpc.operation.name: rpc
    for rpc in (
        _rpc(methods.SEND_MESSAGE, pb.SendMessageRequest, pb.SendMessageResponse),
        _rpc(methods.SEND_STREAMING_MESSAGE, pb.SendMessageRequest, pb.StreamResponse),
        _rpc(methods.GET_TASK, pb.GetTaskRequest, pb.Task),
        _rpc(methods.LIST_TASKS, pb.ListTasksRequest, pb.ListTasksResponse),
        _rpc(methods.CANCEL_TASK, pb.CancelTaskRequest, pb.Task),
        _rpc(methods.SUBSCRIBE_TO_TASK, pb.SubscribeToTaskRequest, pb.StreamResponse),
        _rpc(methods.CREATE_PUSH_CONFIG, pb.TaskPushNotificationConfig, pb.TaskPushNotificationConfig),
        _rpc(methods.GET_PUSH_CONFIG, pb.GetTaskPushNotificationConfigRequest, pb.TaskPushNotificationConfig),
        _rpc(
            methods.LIST_PUSH_CONFIGS,
            pb.ListTaskPushNotificationConfigsRequest,
            pb.ListTaskPushNotificationConfigsResponse,
        ),
        _rpc(methods.DELETE_PUSH_CONFIG, pb.DeleteTaskPushNotificationConfigRequest, Empty),
        _rpc(methods.GET_EXTENDED_CARD, pb.GetExtendedAgentCardRequest, pb.AgentCard),
    )
}
"""By their name in the definition."""
