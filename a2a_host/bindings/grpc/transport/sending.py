"""What leaves a connection: all that is ready in one turn of the event loop is one write."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from h2.errors import ErrorCodes
from h2.exceptions import StreamClosedError, StreamIDTooLowError
from hyperframe.frame import GoAwayFrame

from a2a_host.bindings.grpc.transport.http2 import Http2
from a2a_host.bindings.grpc.transport.metadata import Fields
from a2a_host.bindings.grpc.transport.patience import Patience

_RESET = (StreamClosedError, StreamIDTooLowError, KeyError)
"""What h2 raises for a stream that the peer has reset: it knows of all that came together before it tells of any."""
_TOGETHER = 64 * 1024  # bytes of messages after which nobody waits for more


class Sender:
    """The way out of one connection. Only messages wait: for the windows of the peer, and for the socket."""

    def __init__(self, http2: Http2, transport: asyncio.Transport, patience: Patience) -> None:
        self._http2 = http2
        self._transport = transport
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._ready: list[bytes] = []  # before what h2 has to send
        self._flushing = False
        self._unflushed = 0
        self._full = False
        # Those who wait for room by their stream, who got some last at the end: everybody's turn comes.
        self._waiting: dict[int, asyncio.Future[None]] = {}

    def fields(self, stream_id: int, fields: Fields, last: bool) -> None:
        """Headers, or with `last` trailers."""
        with suppress(*_RESET):
            self._http2.send_headers(stream_id, fields, end_stream=last)
            self._patience.restore()
        self.flush_soon()

    def answer(self, stream_id: int, head: Fields, data: bytes, last: Fields) -> bool:
        """Send all of an answer, if there is room for it now."""
        http2 = self._http2
        room = min(http2.local_flow_control_window(stream_id), http2.max_outbound_frame_size)
        if len(data) > room or self._full:
            return False
        self._ready += [http2.data_to_send(), http2.answer_frames(stream_id, head, data)]
        self.fields(stream_id, last, last=True)
        self._count(len(data))
        return True

    def data(self, stream_id: int, data: bytes | memoryview) -> int:
        """Send as much as there is room for now; the number of bytes."""
        sent = 0
        while sent < len(data) and not self._full:
            room = min(self._http2.local_flow_control_window(stream_id), self._http2.max_outbound_frame_size)
            if room <= 0:
                break
            piece = data[sent : sent + room]
            self._http2.send_data(stream_id, piece)
            self._patience.restore()
            sent += len(piece)
            self._count(len(piece))
        if sent:
            self._waiting.pop(stream_id, None)
            self.flush_soon()
        return sent

    async def room(self, stream_id: int) -> None:
        """Wait until there may be room for data of a stream, or the stream has ended."""
        waiting = self._waiting[stream_id] = self._loop.create_future()
        await waiting

    def wake(self, stream_id: int = 0) -> None:
        """The window of a stream has grown or the stream has ended; 0: there is room for all."""
        for waiting in [self._waiting.get(stream_id)] if stream_id else list(self._waiting.values()):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    def forget(self, stream_id: int) -> None:
        """A stream has ended: who waits for its room waits no more."""
        self.wake(stream_id)
        self._waiting.pop(stream_id, None)

    def pause(self) -> None:
        """The socket takes nothing more."""
        self._full = True

    def resume(self) -> None:
        """It does again."""
        self._full = False
        self.wake()

    def reset(self, stream_id: int, code: ErrorCodes) -> None:
        """End a stream on both sides."""
        with suppress(*_RESET):
            self._http2.reset_stream(stream_id, code)
        self.flush_soon()

    def credit(self, size: int, stream_id: int | None = None) -> None:
        """Let the peer send so many more bytes, of a stream or in all."""
        with suppress(*_RESET):
            self._http2.increment_flow_control_window(size, stream_id)
        self.flush_soon()

    def go_away(self, last_stream_id: int) -> None:
        """No stream after this one will be served. h2 itself would send nothing more after it, not even answers."""
        self.flush()
        self._transport.write(GoAwayFrame(0, last_stream_id=last_stream_id).serialize())

    def flush_soon(self) -> None:
        """Write in this turn of the loop, after all who have something to send."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what is there."""
        self._flushing = False
        self._unflushed = 0
        data = self._http2.data_to_send()
        if self._ready:
            data, self._ready = b"".join([*self._ready, data]), []
        if data:
            self._transport.write(data)

    def _count(self, size: int) -> None:
        """The socket may be full after this: a peer with wide windows does not make us hold all that they take."""
        self._unflushed += size
        if self._unflushed >= _TOGETHER:
            self.flush()
