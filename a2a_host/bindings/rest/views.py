"""The HTTP+JSON operations (§11.3), one view a resource. Each is made for one version of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
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
from a2a_host.bindings.performing import perform_operation
from a2a_host.bindings.rest.framework import AsyncAPIView, EventStreamResponse
from a2a_host.bindings.service_parameters import activated
from a2a_host.bindings.uploads import read_request
from protocol.dialects import Dialect
from protocol.dialects.v1 import V1_0
from protocol.errors import A2AError
from protocol.model import Wire
from protocol.query import decode_query
from tasks_app.usage import count, counted


class OperationView(AsyncAPIView):
    """A view whose handlers are operations, in the JSON of `dialect`."""

    dialect: Dialect = V1_0
    version = V1_0.version

    def from_body(self, operation: Operation, path: Mapping[str, str] | None = None) -> Wire:
        """The operation's request in the body. The values of the path count, whatever the body says."""
        return self._read(operation, lambda: self._read_body(operation, path))

    def _read_body(self, operation: Operation, path: Mapping[str, str] | None) -> Wire:
        request, self.dialect = read_request(self.dialect, operation.request, self.body, path)
        self.forget_body()
        return request

    def from_query(self, operation: Operation, path: Mapping[str, str] | None = None) -> Wire:
        """The operation's request in the query (§11.5)."""
        pairs = parse_qsl(self.request._request.META["QUERY_STRING"], keep_blank_values=True)
        return self._read(operation, lambda: decode_query(operation.request, pairs, path))

    def _read(self, operation: Operation, read: Callable[[], Wire]) -> Wire:
        """What `read` gives. A tenant in the path was checked already and wins over that of the request."""
        self.call.dialect = f"HTTP+JSON/{self.dialect.version}"
        try:
            if operation.check is not None:
                operation.check(self.call.entry)
            request: Any = read()
        except A2AError:
            count(self.call, operation.name, failed=True)
            raise
        django_request: Any = self.request._request
        if django_request.tenant:
            request.tenant = ""
        checked: Wire = request
        return checked

    async def perform(self, operation: Operation, request: Wire) -> HttpResponseBase:
        """Do it, and answer with its response or the stream of them."""
        with counted(self.call, operation.name):
            answer = await perform_operation(self.call, self.dialect, operation, request)
        if isinstance(answer, bytes):
            return Response(answer, headers=dict(activated(self.call)))
        return EventStreamResponse(answer)


class SendMessageView(OperationView):
    """POST /message:send"""

    async def post(self, request: Request) -> HttpResponseBase:
        """SendMessage."""
        return await self.perform(SEND_MESSAGE, self.from_body(SEND_MESSAGE))


class StreamMessageView(OperationView):
    """POST /message:stream"""

    async def post(self, request: Request) -> HttpResponseBase:
        """SendStreamingMessage."""
        return await self.perform(SEND_STREAMING_MESSAGE, self.from_body(SEND_STREAMING_MESSAGE))


class TaskListView(OperationView):
    """GET /tasks"""

    async def get(self, request: Request) -> HttpResponseBase:
        """ListTasks."""
        return await self.perform(LIST_TASKS, self.from_query(LIST_TASKS))


class TaskView(OperationView):
    """GET /tasks/{id}"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """GetTask."""
        return await self.perform(GET_TASK, self.from_query(GET_TASK, {"id": id}))


class CancelTaskView(OperationView):
    """POST /tasks/{id}:cancel"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """CancelTask."""
        return await self.perform(CANCEL_TASK, self.from_body(CANCEL_TASK, {"id": id}))


class SubscribeView(OperationView):
    """POST and GET /tasks/{id}:subscribe: the specification's text and its protobuf annotation differ in the verb."""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """SubscribeToTask."""
        return await self.perform(SUBSCRIBE_TO_TASK, self.from_body(SUBSCRIBE_TO_TASK, {"id": id}))

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """SubscribeToTask."""
        return await self.perform(SUBSCRIBE_TO_TASK, self.from_query(SUBSCRIBE_TO_TASK, {"id": id}))

    def verbs(self) -> tuple[str, ...]:
        """No HEAD: a stream is nothing to look at without its events."""
        return ("GET", "POST")


class PushConfigsView(OperationView):
    """/tasks/{id}/pushNotificationConfigs"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """CreateTaskPushNotificationConfig."""
        return await self.perform(CREATE_PUSH_CONFIG, self.from_body(CREATE_PUSH_CONFIG, {"taskId": id}))

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """ListTaskPushNotificationConfigs."""
        return await self.perform(LIST_PUSH_CONFIGS, self.from_query(LIST_PUSH_CONFIGS, {"taskId": id}))


class PushConfigView(OperationView):
    """/tasks/{id}/pushNotificationConfigs/{configId}"""

    async def get(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """GetTaskPushNotificationConfig."""
        path = {"taskId": id, "id": config_id}
        return await self.perform(GET_PUSH_CONFIG, self.from_query(GET_PUSH_CONFIG, path))

    async def delete(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """DeleteTaskPushNotificationConfig."""
        path = {"taskId": id, "id": config_id}
        return await self.perform(DELETE_PUSH_CONFIG, self.from_query(DELETE_PUSH_CONFIG, path))


class ExtendedCardView(OperationView):
    """GET /extendedAgentCard"""

    async def get(self, request: Request) -> HttpResponseBase:
        """GetExtendedAgentCard. Each caller has one of its own, which changes with the groups of its key."""
        response = await self.perform(GET_EXTENDED_CARD, self.from_query(GET_EXTENDED_CARD))
        response["Cache-Control"] = "private, no-cache"
        return response
