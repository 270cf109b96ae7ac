"""Server-Sent Events for the HTTP bindings: a Channels consumer that sends frames until they end or the client goes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from channels.exceptions import StopConsumer
from channels.generic.http import AsyncHttpConsumer

from a2a_host.bindings.http import CORS, Headers
from tasks_app.operations import Frame

logger = logging.getLogger(__name__)

_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    *CORS,
]
_KEEP_ALIVE = b": keep-alive\n\n"


class EventStream(AsyncHttpConsumer):  # type: ignore[misc]
    """Sends `head + payload + tail` of each frame as one event whose `id` is the frame's seq."""

    def __init__(self, frames: AsyncIterator[Frame], head: bytes, tail: bytes) -> None:
        super().__init__()
        self._frames = frames
        self._head = head
        self._tail = tail
        self._pump: asyncio.Task[None] | None = None

    async def http_request(self, message: dict[str, Any]) -> None:
        """Start to send, beside waiting for the client to go."""
        self._pump = asyncio.create_task(self._send_frames())

    async def http_disconnect(self, message: dict[str, Any]) -> None:
        """The client is gone, or the response is complete. The task that was streamed goes on."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        raise StopConsumer

    async def _send_frames(self) -> None:
        await self.send_headers(status=200, headers=_HEADERS)
        async with contextlib.aclosing(self._frames) as frames:  # type: ignore[type-var]
            try:
                async for frame in frames:
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


async def serve_events(
    scope: Any, receive: Any, send: Any, frames: AsyncIterator[Frame], head: bytes = b"", tail: bytes = b""
) -> None:
    """Answer a request, whose body was read already, with a stream of events."""
    waiting = True

    async def receive_again() -> Any:
        nonlocal waiting
        if waiting:
            waiting = False
            return {"type": "http.request", "body": b"", "more_body": False}
        return await receive()

    await EventStream(frames, head, tail)(scope, receive_again, send)
