"""The HTTP+JSON operations (§11.3), one view a resource. Each is made for one version of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import parse_qsl

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_host.bindings.methods import (
    CANCEL_TASK,
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_CARD,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    Operation,
)
from a2a_host.bindings.performing import Read, perform_operation
from a2a_host.bindings.rest.framework import A2AHttpRequest, AsyncAPIView, EventStreamResponse
from a2a_host.bindings.service_parameters import activated
from a2a_host.bindings.uploads import read_request
from protocol.dialects import Dialect
from protocol.dialects.v1 import V1_0
from protocol.model import Wire
from protocol.query import decode_query

Path = Mapping[str, str] | None


class OperationView(AsyncAPIView):
    """A view whose handlers are operations, in the JSON of `dialect`."""

    dialect: Dialect = V1_0
    version = V1_0.version

    def from_body(self, dialect: Dialect, kind: type[Wire], path: Path) -> tuple[Wire, Dialect]:
        """The request in the body. The values of the path count, whatever the body says."""
        request, spoken = read_request(dialect, kind, self.body, path)
        self.forget_body()
        return self.settled(request), spoken

    def from_query(self, dialect: Dialect, kind: type[Wire], path: Path) -> tuple[Wire, Dialect]:
        """The request in the query (§11.5)."""
        return self.settled(decode_query(kind, self.query, path)), dialect

    @property
    def query(self) -> list[tuple[str, str]]:
        """The decoded parameters of the query."""
        return parse_qsl(self.request._request.META["QUERY_STRING"], keep_blank_values=True)

    def settled(self, request: Any) -> Wire:
        """The request; a tenant in the path was checked already and wins over its own."""
        if cast(A2AHttpRequest, self.request._request).tenant:
            request.tenant = ""
        settled: Wire = request
        return settled

    async def perform(self, operation: Operation, read: Read[Path], path: Path = None) -> HttpResponseBase:
        """Do it, and answer with its response or the stream of them."""
        self.call.dialect = f"HTTP+JSON/{self.dialect.version}"
        answer = await perform_operation(self.call, self.dialect, operation, read, path)
        if isinstance(answer, bytes):
            return Response(answer, headers=dict(activated(self.call)))
        return EventStreamResponse(answer)


class SendMessageView(OperationView):
    """POST /message:send"""

    async def post(self, request: Request) -> HttpResponseBase:
        """SendMessage."""
        return await self.perform(SEND_MESSAGE, self.from_body)


class StreamMessageView(OperationView):
    """POST /message:stream"""

    async def post(self, request: Request) -> HttpResponseBase:
        """SendStreamingMessage."""
        return await self.perform(SEND_STREAMING_MESSAGE, self.from_body)


class TaskListView(OperationView):
    """GET /tasks"""

    async def get(self, request: Request) -> HttpResponseBase:
        """ListTasks."""
        return await self.perform(LIST_TASKS, self.from_query)


class TaskView(OperationView):
    """GET /tasks/{id}"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """GetTask."""
        return await self.perform(GET_TASK, self.from_query, {"id": id})


class CancelTaskView(OperationView):
    """POST /tasks/{id}:cancel"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """CancelTask."""
        return await self.perform(CANCEL_TASK, self.from_body, {"id": id})


class SubscribeView(OperationView):
    """POST and GET /tasks/{id}:subscribe: the specification's text and its protobuf annotation differ in the verb."""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """SubscribeToTask."""
        return await self.perform(SUBSCRIBE_TO_TASK, self.from_body, {"id": id})

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """SubscribeToTask."""
        return await self.perform(SUBSCRIBE_TO_TASK, self.from_query, {"id": id})

    def verbs(self) -> tuple[str, ...]:
        """No HEAD: a stream is nothing to look at without its events."""
        return ("GET", "POST")


class PushConfigsView(OperationView):
    """/tasks/{id}/pushNotificationConfigs"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """CreateTaskPushNotificationConfig."""
        return await self.perform(CREATE_PUSH_CONFIG, self.from_body, {"taskId": id})

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """ListTaskPushNotificationConfigs."""
        return await self.perform(LIST_PUSH_CONFIGS, self.from_query, {"taskId": id})


class PushConfigView(OperationView):
    """/tasks/{id}/pushNotificationConfigs/{configId}"""

    async def get(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """GetTaskPushNotificationConfig."""
        path = {"taskId": id, "id": config_id}
        return await self.perform(GET_PUSH_CONFIG, self.from_query, path)

    async def delete(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """DeleteTaskPushNotificationConfig."""
        path = {"taskId": id, "id": config_id}
        return await self.perform(DELETE_PUSH_CONFIG, self.from_query, path)


class ExtendedCardView(OperationView):
    """GET /extendedAgentCard"""

    async def get(self, request: Request) -> HttpResponseBase:
        """GetExtendedAgentCard. Each caller has one of its own, which changes with the groups of its key."""
        response = await self.perform(GET_EXTENDED_CARD, self.from_query)
        response["Cache-Control"] = "private, no-cache"
        return response
