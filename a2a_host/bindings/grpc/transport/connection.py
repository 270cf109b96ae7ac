"""One HTTP/2 connection: what its frames mean for calls, and what it may cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

from grpc import StatusCode
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    RequestReceived,
    StreamReset,
    TrailersReceived,
    UnknownFrameReceived,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from a2a_host.bindings.grpc.transport.call import HEAD, Method, ServerCall
from a2a_host.bindings.grpc.transport.http2 import CONNECTION_WINDOW, Http2
from a2a_host.bindings.grpc.transport.keep_alive import KeepAlive
from a2a_host.bindings.grpc.transport.messages import Inbox
from a2a_host.bindings.grpc.transport.metadata import Fields, MalformedError
from a2a_host.bindings.grpc.transport.patience import FloodError, Patience
from a2a_host.bindings.grpc.transport.request import NotGrpcError, Request, read_request
from a2a_host.bindings.grpc.transport.sending import Sender
from a2a_host.bindings.grpc.transport.status import StatusError, trailers

_CREDIT = CONNECTION_WINDOW // 2  # bytes that are taken in before the peer is told
_ALIVE = b"are you?"
_DRAINED = b"drained?"
_ALL_STREAMS = 2**31 - 1


class Owner(Protocol):
    """The server of a connection."""

    @property
    def keep_alive(self) -> float:
        """Seconds after which it is asked whether somebody is there."""

    def find(self, path: str) -> Method | None:
        """The method at a path."""

    def inbox(self, encoding: str) -> Inbox:
        """What takes in the messages of a call. Raises StatusError."""

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold on to a handler whose call is over."""

    def add(self, connection: Connection) -> None:
        """A connection has begun."""

    def discard(self, connection: Connection) -> None:
        """It has ended."""


class Connection(asyncio.Protocol):
    """A connection and its calls."""

    sender: Sender
    _keep_alive: KeepAlive
    _transport: asyncio.Transport

    def __init__(self, server: Owner) -> None:
        self._server = server
        self.loop = asyncio.get_running_loop()
        self.peer = ""
        self.calls: dict[int, ServerCall] = {}
        self._http2 = Http2()
        self._patience = Patience()
        self._taken_in = 0
        self._drained = False  # No call begins any more.
        self._closing = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the peer."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self.sender = Sender(self._http2, self._transport, self._patience)
        self._keep_alive = KeepAlive(self._transport, self._server.keep_alive, self._ask)
        self._server.add(self)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self._transport.abort()
            return
        self.peer = str(transport.get_extra_info("peername"))
        self.sender.flush_soon()

    def data_received(self, data: bytes) -> None:
        """Take in frames."""
        if self._closing:
            return
        self._keep_alive.heard = True
        try:
            for event in self._http2.receive_data(data):
                handle = _HANDLERS.get(type(event))
                if handle is not None:
                    handle(self, event)
        except ProtocolError:  # h2 has said so to the peer.
            self.close()
        except FloodError:
            self._http2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            self.close()
        self.sender.flush_soon()

    def pause_writing(self) -> None:
        """Whoever does not read is not read either, nor sent more messages."""
        self.sender.pause()
        if not self._closing:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self.sender.resume()
        if not self._closing:
            self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """Its calls have lost their callers."""
        self._closing = True
        self._keep_alive.stop()
        self._leave_calls()
        self._server.discard(self)

    # For calls

    def forget(self, stream_id: int) -> None:
        """A call is over."""
        del self.calls[stream_id]
        self.sender.forget(stream_id)
        self._close_if_drained()

    def keep(self, task: asyncio.Task[None]) -> None:
        """A call is over, and not its handler."""
        self._server.keep(task)

    # For the server

    def drain(self) -> None:
        """Serve what is under way to us, and then nothing new: the ping comes back when the peer has heard of it."""
        if not self._closing:
            self.sender.go_away(_ALL_STREAMS)
            self._http2.ping(_DRAINED)
            self.sender.flush_soon()

    def end(self) -> None:
        """End all calls and the connection."""
        for call in list(self.calls.values()):
            call.break_off(StatusError(StatusCode.UNAVAILABLE, "The server is shutting down."))
        self.close()

    def close(self) -> None:
        """Write what is there and hang up."""
        if self._closing:
            return
        self._closing = True
        self._leave_calls()
        self.sender.flush()
        self._transport.close()
        self._keep_alive.cut_later()

    # Frames

    def _request(self, event: RequestReceived) -> None:
        stream_id, ended = event.stream_id, event.stream_ended is not None
        if self._drained:
            self.sender.reset(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        try:
            request = read_request(event.headers)
            call = self._call(stream_id, request)
        except MalformedError:
            self._patience.spend()
            self.sender.reset(stream_id, ErrorCodes.PROTOCOL_ERROR)
        except NotGrpcError as error:
            self._refuse(stream_id, [(b":status", error.status)], ended)
        except StatusError as error:
            self._refuse(stream_id, [*HEAD, *trailers(error.code, error.message, error.metadata)], ended)
        else:
            self.calls[stream_id] = call
            call.begin(ended)

    def _call(self, stream_id: int, request: Request) -> ServerCall:
        """Raises StatusError."""
        method = self._server.find(request.path)
        if method is None:
            raise StatusError(StatusCode.UNIMPLEMENTED, "There is no such method.")
        return ServerCall(self, stream_id, request, method, self._server.inbox(request.encoding))

    def _refuse(self, stream_id: int, fields: Fields, ended: bool) -> None:
        """Answer a request that no call comes of."""
        self.sender.fields(stream_id, fields, last=True)
        if not ended:
            self.sender.reset(stream_id, ErrorCodes.NO_ERROR)

    def _data(self, event: DataReceived) -> None:
        size, ended = event.flow_controlled_length, event.stream_ended is not None
        self._taken_in += size
        if self._taken_in >= _CREDIT:
            self.sender.credit(self._taken_in)
            self._taken_in = 0
        if not event.data and not ended:
            self._patience.spend()
        call = self.calls.get(event.stream_id)
        if call is not None:
            call.receive(event.data, size, ended)

    def _trailers(self, event: TrailersReceived) -> None:
        call = self.calls.get(event.stream_id)
        if call is not None:
            call.end_of_request()

    def _reset(self, event: StreamReset) -> None:
        self._patience.spend()
        call = self.calls.get(event.stream_id)
        if call is not None:
            call.leave()

    def _window(self, event: WindowUpdated) -> None:
        self._patience.spend()
        self.sender.wake(event.stream_id)

    def _settings(self, event: RemoteSettingsChanged) -> None:
        self._patience.spend()
        self.sender.wake()

    def _ping_answered(self, event: PingAckReceived) -> None:
        self._patience.spend()
        if event.ping_data == _ALIVE:
            self._keep_alive.answered()
        elif event.ping_data == _DRAINED and not self._drained:
            self.sender.go_away(self._http2.highest_inbound_stream_id)
            self._finish()

    def _worthless(self, event: Event) -> None:
        self._patience.spend()

    def _gone(self, event: ConnectionTerminated) -> None:
        """The peer begins nothing more."""
        self._patience.spend()
        if event.error_code == ErrorCodes.NO_ERROR:
            self._finish()
        else:
            self.close()

    def _ask(self) -> None:
        """Every `keep_alive` seconds: whether the peer is there, and whether its requests come on."""
        now = self.loop.time()
        for call in list(self.calls.values()):
            call.look(now)
        self._http2.ping(_ALIVE)
        self.sender.flush_soon()

    def _finish(self) -> None:
        """Close once the open calls have ended."""
        self._drained = True
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._drained and not self.calls:
            self.loop.call_soon(self.close)  # after what is about to be said of the last call

    def _leave_calls(self) -> None:
        for call in list(self.calls.values()):
            call.leave()


_HANDLERS: dict[type[Event], Callable[[Connection, Any], None]] = {
    RequestReceived: Connection._request,
    DataReceived: Connection._data,
    TrailersReceived: Connection._trailers,
    StreamReset: Connection._reset,
    WindowUpdated: Connection._window,
    RemoteSettingsChanged: Connection._settings,
    PingAckReceived: Connection._ping_answered,
    PingReceived: Connection._worthless,
    PriorityUpdated: Connection._worthless,
    UnknownFrameReceived: Connection._worthless,
    ConnectionTerminated: Connection._gone,
}
