"""One connection: many calls and streams at a time, told apart by their ids.

Replies leave one after the other. While the client does not read them the server's `send` waits, and with it streams
stop to read their tasks and the server stops to read requests.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import msgspec
from channels.generic.websocket import AsyncWebsocketConsumer
from msgspec import UNSET, Raw

from a2a_host.bindings.errors import jsonrpc_error
from a2a_host.bindings.http import ClientGone
from a2a_host.bindings.jsonrpc import NO_ID, attempt, id_of_error, response_around
from a2a_host.bindings.service_parameters import activated, event_id
from a2a_host.bindings.sse import Frames
from a2a_host.bindings.websocket.resuming import named_event_id
from a2a_host.bindings.websocket.upgrade import chosen_subprotocol, read_upgrade, refuse
from a2a_host.websocket_protocol import MESSAGE_LIMIT
from protocol.errors import A2AError, EnvelopeError, InternalError, UnavailableError
from protocol.jsonrpc import Envelope, decode_envelope
from tasks_app.operations import Call
from tasks_app.processes.process import get_host

logger = logging.getLogger(__name__)

BINDING = "WEBSOCKET"
CALLS_MAX = 100
"""Calls, streams among them, that may be open on one connection."""

_END = b'{"final":true}'
_NOT_TEXT, _TOO_BIG, _RESTART = 1003, 1009, 1012


class JsonRpcConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """JSON-RPC 2.0 requests in text messages to one agent, and their replies."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: set[asyncio.Task[None]] = set()
        self._streams: set[asyncio.Task[None]] = set()
        self._ids: set[Any] = set()
        self._sending = asyncio.Lock()
        self._gone = False

    async def connect(self) -> None:
        """Accept a caller who may call the agent; others are refused as over HTTP, before there is a connection."""
        self._parameters = read_upgrade(self.scope)
        self._slug = self.scope["url_route"]["kwargs"]["slug"]
        try:
            self._host = await get_host()
            call = self._call()
        except A2AError as error:
            await refuse(self.scope, self.base_send, error)
            return
        self._limit = call.entry.max_request_bytes
        limit_messages = (self.scope.get("extensions") or {}).get(MESSAGE_LIMIT)
        if limit_messages:
            limit_messages(self._limit)
        headers = [(name.encode(), value.encode("latin-1")) for name, value in activated(call)]
        await self.accept(chosen_subprotocol(self.scope), headers)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Begin what a message asks for; it goes on while others are received."""
        if self._gone:  # It was sent before the client knew.
            return
        if text_data is None:
            await self._close(_NOT_TEXT, "Messages must be text.")
            return
        body = text_data.encode()
        if len(body) > self._limit:
            await self._close(_TOO_BIG, "The message is too big.")
            return
        request_id: Raw | None = NO_ID
        try:
            envelope = decode_envelope(body)
            request_id = envelope.id
            call = self._admit(envelope)
        except EnvelopeError as error:
            await self._refuse_unbegun(error, error.id)
        except A2AError as error:
            await self._refuse_unbegun(error, request_id)
        else:
            self._begin(call, envelope)

    async def disconnect(self, code: int) -> None:
        """Streams end; calls that change something finish unheard, so that no task is left half begun."""
        self._gone = True
        for stream in self._streams:
            stream.cancel()
        if self._calls:
            await asyncio.wait(self._calls)

    async def a2a_host_stop(self, message: dict[str, Any]) -> None:
        """The host stops: callers hear how their calls ended, then the connection is closed.

        Channels finds it by the type of the message, `websocket_protocol.STOP`.
        """
        if self._calls:
            await asyncio.wait(self._calls)
        await self._close(_RESTART, "The host stops.")

    def _admit(self, envelope: Envelope) -> Call:
        """The call of a request. Raises EnvelopeError for an id that is in use, UnavailableError beyond `CALLS_MAX`,
        and what agents and keys have against it now, AgentNotFoundError and UnauthenticatedError."""
        if envelope.id is not None and _key(envelope.id) in self._ids:
            # With the id, the error would be taken for the reply to the open call.
            raise EnvelopeError(f"The id {bytes(envelope.id)[:100].decode()} is in use by an open call.")
        if len(self._calls) >= CALLS_MAX:
            raise UnavailableError(retry_after=1, message=f"{CALLS_MAX} calls are open on this connection.")
        return self._call()

    def _call(self) -> Call:
        return self._parameters.call(self._host, self._host.registry.get(self._slug), BINDING)

    def _begin(self, call: Call, envelope: Envelope) -> None:
        if envelope.id is not None:
            self._ids.add(_key(envelope.id))
        task = asyncio.create_task(self._serve(call, envelope))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _serve(self, call: Call, envelope: Envelope) -> None:
        try:
            await self._reply(call, envelope)
        except ClientGone:
            pass
        except Exception:
            logger.exception("A reply over WebSocket could not be sent")
        finally:
            if envelope.id is not None:
                self._ids.discard(_key(envelope.id))

    async def _reply(self, call: Call, envelope: Envelope) -> None:
        """Do what a request asks for and send the answer; of one without an id nobody hears (JSON-RPC 2.0 §4.1)."""
        request_id = envelope.id
        last_event_id = named_event_id(envelope.params)
        call.resume_after = event_id(str(last_event_id))
        try:
            result = await attempt(call, self._parameters, envelope)
        except A2AError as error:
            await self._refuse(error, request_id and id_of_error(error, request_id))
            return
        if not isinstance(result, bytes):
            await self._stream(result, request_id, with_ids=last_event_id is not UNSET)
        elif request_id is not None:
            head, tail = response_around(request_id)
            await self._send(head + result + tail)

    async def _stream(self, frames: Frames, request_id: Raw | None, with_ids: bool) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            if request_id is not None and not self._gone:
                await self._send_frames(frames, request_id, with_ids)
        except ClientGone:
            raise
        except Exception:
            logger.exception("A stream ended early")
            await self._refuse(InternalError(), request_id)
        finally:
            self._streams.discard(task)
            await frames.aclose()

    async def _send_frames(self, frames: Frames, request_id: Raw, with_ids: bool) -> None:
        head, tail = response_around(request_id)
        while (frame := await frames.next()) is not None:
            if frame.payload is not None:  # Signs of life are pings here.
                event = b',"eventId":%d' % frame.seq if with_ids else b""
                await self._send(head + frame.payload + event + tail)
            del frame
        await self._send(head + _END + tail)

    async def _refuse_unbegun(self, error: A2AError, request_id: Raw | None) -> None:
        """Refuse what has no task of its own. A client that is gone is left to `disconnect`, which has to come yet."""
        with suppress(ClientGone):
            await self._refuse(error, request_id)

    async def _refuse(self, error: A2AError, request_id: Raw | None) -> None:
        if request_id is not None:
            await self._send(jsonrpc_error(error, request_id))

    async def _send(self, message: bytes) -> None:
        """Send when everything before it has left. Raises ClientGone."""
        async with self._sending:
            if self._gone:
                raise ClientGone
            try:
                await self.base_send({"type": "websocket.send", "text": message.decode()})
            except OSError:  # ASGI: the connection is lost.
                self._gone = True
                raise ClientGone from None

    async def _close(self, code: int, reason: str) -> None:
        async with self._sending:
            if not self._gone:
                self._gone = True
                with suppress(OSError):  # It is lost already; `disconnect` is next.
                    await self.close(code, reason)


def _key(request_id: Raw) -> Any:
    """What makes two ids the same, however they are spelled. 1 and "1" differ."""
    return msgspec.json.decode(request_id)
