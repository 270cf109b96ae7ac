"""The resources of the task REST dialect. Each does an operation of 1.0 and writes what came of it in the dialect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_host.bindings.rest.framework import AsyncAPIView, EventStreamResponse, JsonRenderer
from a2a_host.bindings.service_parameters import activated
from a2a_host.bindings.task_rest.stream import DIALECT, open_stream
from a2a_host.bindings.uploads import read_task_message
from protocol.dialects import task_rest
from protocol.dialects.task_rest import ESTIMATE, TaskMessage
from protocol.dialects.v1 import V1_0
from protocol.errors import InvalidParamsError
from protocol.requests import CancelTaskRequest, GetTaskRequest
from protocol.timestamps import print_timestamp
from tasks_app import operations
from tasks_app.operations import Call
from tasks_app.operations.estimating import usual_duration
from tasks_app.tables.record import TaskRecord
from tasks_app.tables.usage import counted

_VERBS = ("get", "head", "post", "put")


class TaskRestView(AsyncAPIView):
    """Answers in plain JSON, whatever the caller accepts."""

    renderer_classes = [JsonRenderer]

    @property
    def call(self) -> Call:
        """The authenticated call, of this dialect."""
        call = super().call
        call.dialect = DIALECT
        return call

    def verbs(self) -> tuple[str, ...]:
        """The HTTP methods that this view answers."""
        return tuple(verb.upper() for verb in _VERBS if hasattr(self, verb))

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """(renderer, media type)."""
        return JsonRenderer(), JsonRenderer.media_type

    async def accept(self, read: Callable[[], TaskMessage]) -> Response:
        """Take in the message that `read` gives: 202 with its task, and when it will probably be done."""
        with counted(self.call, "SendMessage"):
            message = read()
            self.forget_body()
            try:
                record = await operations.start_task(self.call, message.request, message.metadata)
            except InvalidParamsError as error:
                raise task_rest.named(error) from None
        more = {}
        duration = None if record.state.terminal else await usual_duration(self.call)
        if duration is not None:
            more[ESTIMATE] = print_timestamp(record.status_at + duration)
        body = task_rest.write_task(await self.rendered(record), more)
        return Response(body, status=202, headers=dict(activated(self.call)))

    async def rendered(self, record: TaskRecord, strict: bool = False) -> bytes:
        """The Task of 1.0 as JSON, without history."""
        return await operations.rendered(self.call, record, history_length=0, strict=strict)

    async def load(self, id: str) -> TaskRecord:
        """GetTask."""
        with counted(self.call, "GetTask"):
            return await operations.get_task(self.call, V1_0.read(GetTaskRequest, None, {"id": id}))


class TasksView(TaskRestView):
    """/tasks"""

    async def post(self, request: Request) -> HttpResponseBase:
        """A new task."""
        return await self.accept(lambda: read_task_message(self.body, task_rest.read_task))


class TaskView(TaskRestView):
    """/tasks/{id}"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """The task as it is now."""
        return Response(task_rest.write_task(await self.rendered(await self.load(id), strict=True)))


class CancelView(TaskRestView):
    """/tasks/{id}/cancel"""

    async def put(self, request: Request, id: str) -> HttpResponseBase:
        """The canceled task."""
        with counted(self.call, "CancelTask"):
            record = await operations.cancel_task(self.call, V1_0.read(CancelTaskRequest, None, {"id": id}))
        return Response(task_rest.write_task(await self.rendered(record)))


class ArtifactsView(TaskRestView):
    """/tasks/{id}/artifacts"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """All artifacts of the task so far, as an array."""
        return Response(task_rest.write_artifacts(await self.rendered(await self.load(id), strict=True)))


class MessagesView(TaskRestView):
    """/tasks/{id}/messages"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """Everything that was said, oldest first, as an array."""
        task = await operations.rendered(self.call, await self.load(id), artifacts=False, strict=True)
        return Response(task_rest.write_messages(task))

    async def post(self, request: Request, id: str) -> HttpResponseBase:
        """The next message of a task that waits for one."""
        return await self.accept(lambda: read_task_message(self.body, partial(task_rest.read_message, task_id=id)))


class StreamView(TaskRestView):
    """/tasks/{id}/stream"""

    async def get(self, request: Request, id: str) -> HttpResponseBase:
        """The task, then what happens to it, until it ends."""
        with counted(self.call, "SubscribeToTask"):
            return EventStreamResponse(await open_stream(self.call, id))

    def verbs(self) -> tuple[str, ...]:
        """No HEAD: a stream is nothing to look at without its events."""
        return ("GET",)
