"""The HTTP+JSON operations of 0.3 (§7), one view a resource.

A reply has the form of the request's body: `kind` objects, or the JSON of the protobuf definition. Requests without a
body, or with one that leaves it open, are answered in the latter, which the SDKs for 0.3 read.
"""

from __future__ import annotations

from typing import Any

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
)
from a2a_host.bindings.rest.framework import JsonRenderer
from a2a_host.bindings.rest.v03.errors import error_response_v03
from a2a_host.bindings.rest.views import OperationView, Path
from protocol.dialects import Dialect
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

    def from_body(self, dialect: Dialect, kind: type[Wire], path: Path) -> tuple[Wire, Dialect]:
        """The request in the body, whose form is that of the answer."""
        return super().from_body(http_form(self.body), kind, path)

    def from_query(self, dialect: Dialect, kind: type[Wire], path: Path) -> tuple[Wire, Dialect]:
        """The request in path and query."""
        return self.settled(self.form.read_query(kind, self.query, path or {})), self.form


class SendMessageView(V03View):
    """POST /v1/message:send"""

    async def post(self, request: Request) -> HttpResponseBase:
        """message/send (0.3 §7.1)."""
        return await self.perform(SEND_MESSAGE, self.from_body)


class StreamMessageView(V03View):
    """POST /v1/message:stream"""

    async def post(self, request: Request) -> HttpResponseBase:
        """message/stream (0.3 §7.2)."""
        return await self.perform(SEND_STREAMING_MESSAGE, self.from_body)


class TaskListView(V03View):
    """GET /v1/tasks, which the text has and the protobuf definition has not (0.3 §7.3)."""

    form = V0_3_WRAPPED

    async def get(self, request: Request) -> HttpResponseBase:
        """tasks/list: the newest tasks."""
        return await self.perform(LIST_TASKS, self.from_query)


class TaskView(V03View):
    """GET /v1/tasks/{id}"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/get (0.3 §7.3)."""
        return await self.perform(GET_TASK, self.from_query, {"id": id})


class CancelTaskView(V03View):
    """POST /v1/tasks/{id}:cancel"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/cancel (0.3 §7.4)."""
        return await self.perform(CANCEL_TASK, self.from_body, {"id": id})


class SubscribeView(V03View):
    """POST and GET /v1/tasks/{id}:subscribe: the text of the specification and its protobuf annotation differ."""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/resubscribe (0.3 §7.9)."""
        return await self.perform(RESUBSCRIBE_TO_TASK, self.from_body, {"id": id})

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/resubscribe (0.3 §7.9)."""
        return await self.perform(RESUBSCRIBE_TO_TASK, self.from_query, {"id": id})

    def verbs(self) -> tuple[str, ...]:
        """No HEAD: a stream is nothing to look at without its events."""
        return ("GET", "POST")


class PushConfigsView(V03View):
    """/v1/tasks/{id}/pushNotificationConfigs"""

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/set (0.3 §7.5)."""
        return await self.perform(CREATE_PUSH_CONFIG, self.from_body, {"taskId": id})

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/list (0.3 §7.7)."""
        return await self.perform(LIST_PUSH_CONFIGS, self.from_query, {"id": id})


class PushConfigView(V03View):
    """/v1/tasks/{id}/pushNotificationConfigs/{configId}"""

    async def get(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/get (0.3 §7.6)."""
        path = {"id": id, "pushNotificationConfigId": config_id}
        return await self.perform(GET_PUSH_CONFIG, self.from_query, path)

    async def delete(self, request: Request, id: str, config_id: str) -> HttpResponseBase:
        """tasks/pushNotificationConfig/delete (0.3 §7.8)."""
        path = {"id": id, "pushNotificationConfigId": config_id}
        return await self.perform(DELETE_PUSH_CONFIG, self.from_query, path)


class CardView(V03View):
    """GET /v1/card"""

    async def get(self, request: Request) -> HttpResponseBase:
        """agent/getAuthenticatedExtendedCard (0.3 §7.10). Each caller has one of its own."""
        response = await self.perform(GET_AUTHENTICATED_EXTENDED_CARD, self.from_query)
        response["Cache-Control"] = "private, no-cache"
        return response
