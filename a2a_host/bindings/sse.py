"""Server-Sent Events for the HTTP bindings: a Channels consumer that sends frames until they end or the client goes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from channels.exceptions import StopConsumer
from channels.generic.http import AsyncHttpConsumer

from a2a_host.bindings.http import CORS, Headers
from tasks_app.operations import Frame, TaskStream

logger = logging.getLogger(__name__)

_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    *CORS,
]
_KEEP_ALIVE = b": keep-alive\n\n"


class EventStream(AsyncHttpConsumer):  # type: ignore[misc]
    """Sends `head + payload + tail` of each frame as one event whose `id` is the frame's seq.

    An ASGI application for a request whose body was read already.
    """

    def __init__(self, frames: TaskStream, head: bytes = b"", tail: bytes = b"") -> None:
        super().__init__()
        self._frames = frames
        self._head = head
        self._tail = tail
        self._pump: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send until the frames end or the client goes; the task that is streamed goes on."""
        try:
            await super().__call__({"type": "http"}, _after_body(receive), send)
        finally:
            await self._frames.aclose()

    async def http_request(self, message: dict[str, Any]) -> None:
        """Start to send, beside waiting for the client to go."""
        self._pump = asyncio.create_task(self._send_frames())

    async def http_disconnect(self, message: dict[str, Any]) -> None:
        """The client is gone, or the response is complete."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        raise StopConsumer

    async def _send_frames(self) -> None:
        await self.send_headers(status=200, headers=_HEADERS)
        try:
            async for frame in self._frames:
                await self.send_body(self._event(frame), more_body=True)
        except Exception:
            # The client sees the end without a terminal state and subscribes again.
            logger.exception("A stream ended early")
        await self.send_body(b"")

    def _event(self, frame: Frame) -> bytes:
        if frame.payload is None:
            return _KEEP_ALIVE
        data = self._head + frame.payload + self._tail
        if b"\n" in data or b"\r" in data:  # white space of JSON that was stored as it came; it would end the line
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        return b"id: %d\ndata: %b\n\n" % (frame.seq, data)


def _after_body(receive: Any) -> Any:
    """`receive` that begins with an empty request, since the real one was read."""
    first: list[dict[str, Any]] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def next_message() -> Any:
        return first.pop() if first else await receive()

    return next_message
