"""Server-Sent Events for the HTTP bindings: a Channels consumer that sends frames until they end or the client goes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from channels.generic.http import AsyncHttpConsumer

from a2a_host.bindings.http import CORS, Headers
from protocol.dialects import Dialect
from protocol.model import Wire
from tasks_app.operations import Frame, TaskStream

logger = logging.getLogger(__name__)

MEDIA_TYPE = b"text/event-stream; charset=utf-8"
_HEADERS: Headers = [
    (b"content-type", MEDIA_TYPE),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    *CORS,
]
_KEEP_ALIVE = b": keep-alive\n\n"
_TOGETHER = 64 * 1024  # bytes after which events that are at hand are sent and not joined with more


class Frames(Protocol):
    """The frames of a stream as its reader gets them. Has to be closed."""

    @property
    def headers(self) -> Headers | None:
        """Headers of the reply, beside those of every stream."""

    @property
    def event(self) -> bytes:
        """Lines that the newest frame has as an event beside its data."""

    @property
    def beside(self) -> bytes:
        """Members that the newest frame has in the JSON that it is wrapped in, each after a comma."""

    async def next(self) -> Frame | None:
        """The next frame, None at the end. One without a payload is a sign of life."""

    @property
    def at_hand(self) -> bool:
        """Whether the next frame is there, so that nobody waits for it."""

    async def aclose(self) -> None:
        """Read no more."""


class DialectFrames:
    """The frames of `stream`, which are of a `kind`, as `dialect` writes them."""

    __slots__ = ("_kind", "dialect", "headers", "stream")

    event = beside = b""

    def __init__(self, stream: TaskStream, dialect: Dialect, kind: type[Wire], headers: Headers | None = None) -> None:
        self.stream = stream
        self.dialect = dialect
        self._kind = kind
        self.headers = headers

    async def next(self) -> Frame | None:
        """See `Frames.next`."""
        try:
            frame = await anext(self.stream)
        except StopAsyncIteration:
            return None
        if frame.payload is not None:
            frame.payload = self.dialect.write(self._kind, frame.payload)
        return frame

    @property
    def at_hand(self) -> bool:
        """See `Frames.at_hand`."""
        return self.stream.at_hand

    async def aclose(self) -> None:
        """See `Frames.aclose`."""
        await self.stream.aclose()


class EventStream(AsyncHttpConsumer):  # type: ignore[misc]
    """Sends `head + payload + tail` of each frame as one event whose `id` is the frame's seq.

    An ASGI application for a request whose body was read already. Thousands are idle at a time, so it runs in the
    server's own task instead of the consumer's dispatch loop, and keeps nothing between two frames.
    """

    def __init__(self, frames: Frames, head: bytes = b"", tail: bytes = b"") -> None:
        self._frames = frames
        self._head = head
        self._tail = tail

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send until the frames end or the client goes; the task that is streamed goes on."""
        self.base_send = send
        gone: asyncio.Future[Any] = asyncio.ensure_future(receive())
        sender = asyncio.current_task()
        assert sender is not None

        def client_left(_: object) -> None:
            sender.cancel()

        gone.add_done_callback(client_left)
        try:
            await self._send_frames()
        except asyncio.CancelledError:
            if not gone.done():
                raise  # the server stops
            sender.uncancel()
        finally:
            await self._frames.aclose()
            gone.remove_done_callback(client_left)
            gone.cancel()

    async def _send_frames(self) -> None:
        await self.send_headers(status=200, headers=[*_HEADERS, *(self._frames.headers or ())])
        try:
            while events := await self._next_events():
                await self.send_body(events, more_body=True)
                del events
        except Exception:
            # The client sees the end without a terminal state and subscribes again.
            logger.exception("A stream ended early")
        await self.send_body(b"")

    async def _next_events(self) -> bytes:
        """The next event, and those behind it that are at hand: who comes back to a long log is sent a few pieces."""
        event = await self._next_event()
        if event is None or not self._frames.at_hand:
            return event or b""
        events, size = [event], len(event)
        while size < _TOGETHER and self._frames.at_hand and (event := await self._next_event()) is not None:
            events.append(event)
            size += len(event)
        return b"".join(events)

    async def _next_event(self) -> bytes | None:
        frame = await self._frames.next()
        if frame is None:
            return None
        if frame.payload is None:
            return _KEEP_ALIVE
        data = self._head + frame.payload + self._frames.beside + self._tail
        if b"\n" in data or b"\r" in data:  # white space of JSON that was stored as it came; it would end the line
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        return b"id: %d\n%bdata: %b\n\n" % (frame.seq, self._frames.event, data)
