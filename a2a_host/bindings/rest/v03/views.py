"""The HTTP+JSON operations of 0.3 (§7), one view a resource.

A reply has the form of the request's body: `kind` objects, or the JSON of the protobuf definition. Requests without a
body, or with one that leaves it open, are answered in the latter, which the SDKs for 0.3 read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from a2a_host.bindings.methods import (
    CANCEL_TASK,
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_AUTHENTICATED_EXTENDED_CARD,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    LIST_TASKS,
    RESUBSCRIBE_TO_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    Operation,
)
from a2a_host.bindings.rest.framework import JsonRenderer
from a2a_host.bindings.rest.v03.errors import error_response_v03
from a2a_host.bindings.rest.views import OperationView
from protocol.dialects.v03 import V0_3_PROTO, V0_3_WRAPPED, V03, http_form
from protocol.model import Wire


class V03View(OperationView):
    """Answers in plain JSON, which is the one media type of 0.3."""

    form: V03 = V0_3_PROTO
    dialect = V0_3_PROTO
    version = V0_3_PROTO.version
    renderer_classes = [JsonRenderer]

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """(renderer, media type)."""
        return JsonRenderer(), JsonRenderer.media_type

    def get_exception_handler(self) -> Any:
        """One error, one document."""
        return error_response_v03

    def from_body(self, operation: Operation, path: Mapping[str, str] | None = None) -> Wire:
        """The operation's request in the body, whose form is that of the answer."""
        self.dialect = http_form(self.body)
        return super().from_body(operation, path)

    def from_query(self, operation: Operation, path: Mapping[str, str] | None = None) -> Wire:
        """The operation's request in path and query."""
        self.dialect = form = self.form
        pairs = parse_qsl(self.request._request.META["QUERY_STRING"], keep_blank_values=True)
        return self._read(operation, lambda: form.read_query(operation.request, pairs, path or {}))


class SendMessageView(V03View):
    """POST /v1/message:send"""

    async def post(self, request: Request) -> HttpResponseBase:
        """message/send (0.3 §7.1)."""
        return await self.perform(SEND_MESSAGE, self.from_body(SEND_MESSAGE))


class StreamMessageView(V03View):
    """POST /v1/message:stream"""

    async def post(self, request: Request) -> HttpResponseBase:
        """message/stream (0.3 §7.2)."""
        return await self.perform(SEND_STREAMING_MESSAGE, self.from_body(SEND_STREAMING_MESSAGE))


class TaskListView(V03View):
    """GET /v1/tasks, which the text has and the protobuf definition has not (0.3 §7.3)."""

    form = V0_3_WRAPPED

    async def get(self, request: Request) -> HttpResponseBase:
        """tasks/list: the newest tasks."""
        return await self.perform(LIST_TASKS, self.from_query(LIST_TASKS))


class TaskView(V03View):
    """GET /v1/tasks/{id}"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/get (0.3 §7.3)."""
        return await self.perform(GET_TASK, self.from_query(GET_TASK, {"id": id}))


class CancelTaskView(V03View):
    """POST /v1/tasks/{id}:cancel"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/cancel (0.3 §7.4)."""
        return await self.perform(CANCEL_TASK, self.from_body(CANCEL_TASK, {"id": id}))


class SubscribeView(V03View):
    """POST and GET /v1/tasks/{id}:subscribe: the text of the specification and its protobuf annotation differ."""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/resubscribe (0.3 §7.9)."""
        return await self.perform(RESUBSCRIBE_TO_TASK, self.from_body(RESUBSCRIBE_TO_TASK, {"id": id}))

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/resubscribe (0.3 §7.9)."""
        return await self.perform(RESUBSCRIBE_TO_TASK, self.from_query(RESUBSCRIBE_TO_TASK, {"id": id}))

    def verbs(self) -> tuple[str, ...]:
        """No HEAD: a stream is nothing to look at without its events."""
        return ("GET", "POST")


class PushConfigsView(V03View):
    """/v1/tasks/{id}/pushNotificationConfigs"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/set (0.3 §7.5)."""
        return await self.perform(CREATE_PUSH_CONFIG, self.from_body(CREATE_PUSH_CONFIG, {"taskId": id}))

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/list (0.3 §7.7)."""
        return await self.perform(LIST_PUSH_CONFIGS, self.from_query(LIST_PUSH_CONFIGS, {"id": id}))


class PushConfigView(V03View):
    """/v1/tasks/{id}/pushNotificationConfigs/{configId}"""

    async def get(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/get (0.3 §7.6)."""
        path = {"id": id, "pushNotificationConfigId": config_id}
        return await self.perform(GET_PUSH_CONFIG, self.from_query(GET_PUSH_CONFIG, path))

    async def delete(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/delete (0.3 §7.8)."""
        path = {"id": id, "pushNotificationConfigId": config_id}
        return await self.perform(DELETE_PUSH_CONFIG, self.from_query(DELETE_PUSH_CONFIG, path))


class CardView(V03View):
    """GET /v1/card"""

    async def get(self, request: Request) -> HttpResponseBase:
        """agent/getAuthenticatedExtendedCard (0.3 §7.10). Each caller has one of its own."""
        operation = GET_AUTHENTICATED_EXTENDED_CARD
        response = await self.perform(operation, self.from_query(operation))
        response["Cache-Control"] = "private, no-cache"
        return response
