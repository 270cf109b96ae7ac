"""One call, from its head to its status: what handlers get."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from grpc import StatusCode
from h2.errors import ErrorCodes

from a2a_host.bindings.grpc.transport.http2 import STREAM_WINDOW
from a2a_host.bindings.grpc.transport.messages import Inbox, Message, Packed, framed
from a2a_host.bindings.grpc.transport.metadata import Fields, Metadata, written
from a2a_host.bindings.grpc.transport.request import Request
from a2a_host.bindings.grpc.transport.sending import Sender
from a2a_host.bindings.grpc.transport.status import StatusError, trailers

logger = logging.getLogger(__name__)

STALLED_SECONDS = 60.0
"""A request of which nothing comes for so long, and that is not whole, is given up."""
HEAD: Fields = [(b":status", b"200"), (b"content-type", b"application/grpc")]
_SMALL = 16 * 1024 - 5  # bytes of a message that fits into a frame of the usual size
_CREDIT = STREAM_WINDOW // 2  # bytes that are taken in before the client is told


class Line(Protocol):
    """The connection of a call."""

    loop: asyncio.AbstractEventLoop
    peer: str
    sender: Sender

    def forget(self, stream_id: int) -> None:
        """A call is over."""

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold on to a handler whose call is over."""


class ServerCall:
    """A call for its handler, which runs to its end whether anybody still waits or not, unless it says otherwise."""

    __slots__ = (
        "_deadline",
        "_ended",
        "_head",
        "_head_sent",
        "_heard",
        "_inbox",
        "_leaving",
        "_line",
        "_messages",
        "_method",
        "_owed",
        "_reader",
        "_stream_id",
        "_task",
        "over",
        "request",
    )

    def __init__(self, line: Line, stream_id: int, request: Request, method: Method, inbox: Inbox) -> None:
        self.request = request
        self.over = False
        """Whether its status was sent, or nobody waits for one any more."""
        self._line = line
        self._stream_id = stream_id
        self._method = method
        self._inbox = inbox
        self._messages: deque[Packed] = deque()
        self._ended = False  # The caller sends nothing more.
        self._heard = 0.0  # when something came that was not the end
        self._owed = 0
        self._head = HEAD
        self._head_sent = False
        self._leaving = False
        self._reader: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> str:
        """The address of the client."""
        return self._line.peer

    def take(self) -> Message:
        """The one message of the caller, which is forgotten here. Raises StatusError."""
        return self._inbox.unpacked(self._messages.popleft())

    async def read(self) -> Message | None:
        """The next message of a caller who sends many, None at the end. Raises StatusError."""
        while not self._messages and not self._ended and not self.over:
            self._reader = self._line.loop.create_future()
            await self._reader
        if not self._messages:
            return None
        packed = self._messages.popleft()
        self._credit()
        return self._inbox.unpacked(packed)

    def leave_with_caller(self) -> None:
        """From here on the handler is cancelled when its caller goes. Raises CancelledError if that has happened."""
        self._leaving = True
        if self.over:
            raise asyncio.CancelledError

    def set_initial_metadata(self, metadata: Metadata) -> None:
        """What comes before the first message, and with it unless `write_head` sends it."""
        self._head = [*HEAD, *written(metadata)]

    def write_head(self) -> None:
        """Send the initial metadata now: the first message may take its time."""
        if not self._head_sent and not self.over:
            self._head_sent = True
            self._line.sender.fields(self._stream_id, self._head, last=False)

    async def write(self, message: bytes) -> None:
        """Send a message. Returns when it is on its way, or nobody waits for it any more."""
        self.write_head()
        if self.over:
            return
        data = framed(message)
        sent = self._line.sender.data(self._stream_id, data)
        if sent < len(data):
            await self._write_rest(memoryview(data)[sent:])

    async def _write_rest(self, data: memoryview) -> None:
        sender = self._line.sender
        while data:
            await sender.room(self._stream_id)
            if self.over:
                return
            data = data[sender.data(self._stream_id, data) :]

    # What the connection tells a call.

    def begin(self, ended: bool) -> None:
        """The head has come. `ended`: nothing else will."""
        loop = self._line.loop
        if self.request.timeout is not None:
            self._deadline = loop.call_later(self.request.timeout, self._expire)
        if self._method.reads:
            self._start()
        if ended:
            self.end_of_request()
        else:
            self._heard = loop.time()

    def receive(self, data: bytes, size: int, ended: bool) -> None:
        """Bytes of the caller, which took `size` of the window."""
        if self.over:
            return
        message = self._inbox.only(data) if ended else None
        if message is not None:
            self._messages.append(message)
        else:
            try:
                self._messages.extend(self._inbox.feed(data))
                if len(self._messages) > 1 and not self._method.reads:
                    raise _not_one_message()
            except StatusError as error:
                self.break_off(error)
                return
        if ended:
            self.end_of_request()
            return
        self._heard = self._line.loop.time()
        self._owed += size
        self._credit()
        self._wake_reader()

    def end_of_request(self) -> None:
        """The caller sends nothing more."""
        self._ended = True
        if self._inbox.within:
            self.break_off(StatusError(StatusCode.INTERNAL, "The request ended within a message."))
        elif self._method.reads:
            self._wake_reader()
        elif not self._messages:
            self.break_off(_not_one_message())
        else:
            self._inbox.release()
            self._start()

    def look(self, now: float) -> None:
        """Give the call up if its request stands still: what is here of it takes room."""
        waits = self._task is None or (self._inbox.within and not self._messages)
        if waits and not self.over and now - self._heard >= STALLED_SECONDS:
            self.break_off(StatusError(StatusCode.DEADLINE_EXCEEDED, "The rest of the request did not come."))

    def break_off(self, error: StatusError) -> None:
        """End the call, whatever its handler does."""
        self._end(error.code, error.message, error.metadata)
        self._abandon()

    def leave(self) -> None:
        """The caller has gone, without a status."""
        self._close()
        self._abandon()

    def _credit(self) -> None:
        """Let the caller send more, once what is here has been read."""
        if self._method.reads:
            if self._messages:
                return
            self._inbox.release()
        if self._owed >= _CREDIT and not self._ended and not self.over:
            self._line.sender.credit(self._owed, self._stream_id)
            self._owed = 0

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _start(self) -> None:
        self._task = self._line.loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            answer = await self._method.respond(self)
            if answer is None:
                self._end(StatusCode.OK)
            elif not self._answer(answer):
                await self.write(answer)
                self._end(StatusCode.OK)
        except StatusError as error:
            self._end(error.code, error.message, error.metadata)
        except asyncio.CancelledError:
            if not self.over:  # The process ends, and not the call.
                self._end(StatusCode.UNAVAILABLE)
                raise
        except Exception:
            logger.exception("A call of %s by %s failed", self.request.path, self.peer)
            self._end(StatusCode.UNKNOWN)

    def _answer(self, message: bytes) -> bool:
        """Send a small plain answer and its status together, if there is room for it now."""
        plain = self._head is HEAD and not self._head_sent
        if len(message) > _SMALL or not plain or not self._ended or self.over:
            return False
        sent = self._line.sender.answer(self._stream_id, HEAD, framed(message), trailers(StatusCode.OK))
        if sent:
            self._close()
        return sent

    def _expire(self) -> None:
        self.break_off(StatusError(StatusCode.DEADLINE_EXCEEDED, "The deadline has passed."))

    def _end(self, code: StatusCode, message: str = "", metadata: Metadata = ()) -> None:
        if self.over:
            return
        fields = trailers(code, message, metadata)
        sender = self._line.sender
        sender.fields(self._stream_id, fields if self._head_sent else [*self._head, *fields], last=True)
        if not self._ended:
            sender.reset(self._stream_id, ErrorCodes.NO_ERROR)  # The rest of the request is not wanted.
        self._close()

    def _close(self) -> None:
        if not self.over:
            self.over = True
            if self._deadline is not None:
                self._deadline.cancel()
            self._inbox.close()
            self._line.forget(self._stream_id)

    def _abandon(self) -> None:
        """Nobody waits for what the handler still does."""
        self._wake_reader()
        if self._task is not None and not self._task.done():
            self._line.keep(self._task)
            if self._leaving:
                self._task.cancel()


def _not_one_message() -> StatusError:
    return StatusError(StatusCode.UNIMPLEMENTED, "The method takes exactly one message.")


Respond = Callable[[ServerCall], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its handler gives the one message of the answer, or None if it wrote the messages itself.

    A handler that `reads` is called when the head is here and reads the messages; others when their one message is.
    """

    respond: Respond
    reads: bool = False
