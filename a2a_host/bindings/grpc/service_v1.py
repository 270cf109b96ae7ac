"""The service of A2A 1.0: `lf.a2a.v1.A2AService`. Its messages are the ProtoJSON of the host, field by field."""

from __future__ import annotations

from a2a.types import a2a_pb2 as pb
from google.protobuf.empty_pb2 import Empty

from a2a_host.bindings import methods
from a2a_host.bindings.grpc.service import Rpc
from protocol.dialects.v1 import V1_0

NAME = "lf.a2a.v1.A2AService"
DIALECT = V1_0
METHODS: dict[str, Rpc] = {
    rpc.operation.name: rpc
    for rpc in (
        Rpc(methods.SEND_MESSAGE, pb.SendMessageRequest, pb.SendMessageResponse),
        Rpc(methods.SEND_STREAMING_MESSAGE, pb.SendMessageRequest, pb.StreamResponse),
        Rpc(methods.GET_TASK, pb.GetTaskRequest, pb.Task),
        Rpc(methods.LIST_TASKS, pb.ListTasksRequest, pb.ListTasksResponse),
        Rpc(methods.CANCEL_TASK, pb.CancelTaskRequest, pb.Task),
        Rpc(methods.SUBSCRIBE_TO_TASK, pb.SubscribeToTaskRequest, pb.StreamResponse),
        Rpc(methods.CREATE_PUSH_CONFIG, pb.TaskPushNotificationConfig, pb.TaskPushNotificationConfig),
        Rpc(methods.GET_PUSH_CONFIG, pb.GetTaskPushNotificationConfigRequest, pb.TaskPushNotificationConfig),
        Rpc(
            methods.LIST_PUSH_CONFIGS,
            pb.ListTaskPushNotificationConfigsRequest,
            pb.ListTaskPushNotificationConfigsResponse,
        ),
        Rpc(methods.DELETE_PUSH_CONFIG, pb.DeleteTaskPushNotificationConfigRequest, Empty),
        Rpc(methods.GET_EXTENDED_CARD, pb.GetExtendedAgentCardRequest, pb.AgentCard),
    )
}
"""By their name in the definition."""
