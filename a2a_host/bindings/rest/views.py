"""The HTTP+JSON operations (§11.3), one view a resource."""

from __future__ import annotations

from urllib.parse import parse_qsl

from rest_framework.request import Request
from rest_framework.response import Response

from a2a_host.bindings.rest.framework import AsyncAPIView, EventStreamResponse
from protocol import codec
from protocol.errors import PushNotificationNotSupportedError, UnsupportedOperationError
from protocol.query import decode_query
from protocol.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from tasks_app import operations


def query_pairs(request: Request) -> list[tuple[str, str]]:
    """The query's names and values, decoded."""
    return parse_qsl(request.META["QUERY_STRING"], keep_blank_values=True)


class SendMessageView(AsyncAPIView):
    """POST /message:send"""

    async def post(self, request: Request) -> Response:
        """SendMessage."""
        answer = await operations.send_message(self.call, codec.decode(SendMessageRequest, self.body))
        return Response(answer.payload())


class StreamMessageView(AsyncAPIView):
    """POST /message:stream"""

    async def post(self, request: Request) -> EventStreamResponse:
        """SendStreamingMessage."""
        message = codec.decode(SendMessageRequest, self.body)
        return EventStreamResponse(await operations.stream_message(self.call, message))


class TaskListView(AsyncAPIView):
    """GET /tasks"""

    async def get(self, request: Request) -> Response:
        """ListTasks."""
        page = await operations.list_tasks(self.call, decode_query(ListTasksRequest, query_pairs(request)))
        return Response(page.payload())


class TaskView(AsyncAPIView):
    """GET /tasks/{id}"""

    async def get(self, request: Request, id: str) -> Response:
        """GetTask."""
        wanted = decode_query(GetTaskRequest, query_pairs(request), {"id": id})
        return Response((await operations.get_task(self.call, wanted)).render(wanted.history_length))


class CancelTaskView(AsyncAPIView):
    """POST /tasks/{id}:cancel"""

    async def post(self, request: Request, id: str) -> Response:
        """CancelTask. The id of the path counts, whatever the body says."""
        wanted = codec.decode(CancelTaskRequest, self.body, {"id": id})
        return Response((await operations.cancel_task(self.call, wanted)).render())


class SubscribeView(AsyncAPIView):
    """POST and GET /tasks/{id}:subscribe: the specification's text and its protobuf annotation differ in the verb."""

    async def post(self, request: Request, id: str) -> EventStreamResponse:
        """SubscribeToTask."""
        wanted = codec.decode(SubscribeToTaskRequest, self.body, {"id": id})
        return EventStreamResponse(await operations.subscribe_to_task(self.call, wanted))

    async def get(self, request: Request, id: str) -> EventStreamResponse:
        """SubscribeToTask."""
        wanted = decode_query(SubscribeToTaskRequest, query_pairs(request), {"id": id})
        return EventStreamResponse(await operations.subscribe_to_task(self.call, wanted))

    def verbs(self) -> tuple[str, ...]:
        """No HEAD: a stream is nothing to look at without its events."""
        return ("GET", "POST")


class PushConfigsView(AsyncAPIView):
    """/tasks/{id}/pushNotificationConfigs"""

    async def get(self, request: Request, id: str) -> Response:
        """ListTaskPushNotificationConfigs: no agent of this version has the capability (§3.3.4)."""
        raise PushNotificationNotSupportedError

    post = get


class PushConfigView(AsyncAPIView):
    """/tasks/{id}/pushNotificationConfigs/{configId}"""

    async def get(self, request: Request, id: str, config_id: str) -> Response:
        """GetTaskPushNotificationConfig: no agent of this version has the capability (§3.3.4)."""
        raise PushNotificationNotSupportedError

    delete = get


class ExtendedCardView(AsyncAPIView):
    """GET /extendedAgentCard"""

    async def get(self, request: Request) -> Response:
        """GetExtendedAgentCard: no agent of this version has the capability (§3.3.4)."""
        raise UnsupportedOperationError("The agent has no extended card.")
