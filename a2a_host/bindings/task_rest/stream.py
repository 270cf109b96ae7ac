"""The stream of a task in the task REST dialect. A task that has ended is one event: clients subscribe after the start,
and a quick agent is done by then."""

from __future__ import annotations

from typing import Final

from a2a_host.bindings.http import Headers
from a2a_host.bindings.performing import activated_headers
from a2a_host.bindings.sse import DialectFrames, Frames
from protocol.dialects.task_rest import VERSION, TaskEvents
from protocol.dialects.v1 import V1_0
from protocol.errors import UnsupportedOperationError
from protocol.model import StreamResponse
from protocol.requests import SubscribeToTaskRequest
from tasks_app import operations
from tasks_app.operations import Call, Frame, SendResult, with_contents

DIALECT: Final = f"HTTP+JSON/{VERSION}"
"""What calls of the dialect are counted as, and what a task remembers of its creation."""


class TaskFrames:
    """Events of the dialect in place of StreamResponses. `last` is the only one of a task that has ended."""

    __slots__ = ("_events", "_frames", "_last", "headers")

    event = beside = b""

    def __init__(self, frames: Frames | None, headers: Headers | None, last: Frame | None = None) -> None:
        self._frames = frames
        self._last = last
        self._events = TaskEvents()
        self.headers = headers

    async def next(self) -> Frame | None:
        """See `Frames.next`."""
        if self._frames is not None:
            frame = await self._frames.next()
        else:
            frame, self._last = self._last, None
        if frame is not None and frame.payload is not None:
            return Frame(frame.seq, self._events.write(frame.payload))
        return frame

    @property
    def at_hand(self) -> bool:
        """See `Frames.at_hand`."""
        return self._frames is not None and self._frames.at_hand

    async def aclose(self) -> None:
        """See `Frames.aclose`."""
        if self._frames is not None:
            await self._frames.aclose()


async def open_stream(call: Call, task_id: str) -> TaskFrames:
    """Raises InvalidParamsError, TaskNotFoundError, UnsupportedOperationError for an agent that does not stream."""
    headers = activated_headers(call)
    try:
        request = V1_0.read(SubscribeToTaskRequest, None, {"id": task_id})
        stream = await operations.subscribe_to_task(call, request)
    except UnsupportedOperationError:
        if not call.entry.streaming:
            raise
        record = await call.load_task(task_id)
        if not record.state.terminal:
            raise
        payload = await with_contents(call, StreamResponse, SendResult(record, 0).payload())
        return TaskFrames(None, headers, Frame(record.last_seq, payload))
    return TaskFrames(DialectFrames(stream, V1_0, StreamResponse), headers)
