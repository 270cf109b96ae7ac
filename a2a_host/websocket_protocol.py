"""uvicorn's WebSocket connection, with limits that hold for clients that mean harm, and an end that callers hear of."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from protocol.errors import UnavailableError

MESSAGE_LIMIT = "a2a_host.message_limit"
"""Extension in the scope: a function that sets the largest message that is read, in bytes."""
STOP = "a2a_host.stop"
"""Message to the application when the server stops: answer who waits, then close. Channels names its handler by it."""
_LINGER_SECONDS = 1.0


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Reads nothing from a client that does not read, and waits for no client for ever."""

    def handle_connect(self, event: Request) -> None:
        """A request for an upgrade."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions: Any = self.scope["extensions"]
            extensions[MESSAGE_LIMIT] = self._limit_messages

    def _limit_messages(self, size: int) -> None:
        self.conn.max_message_size = size

    def pause_writing(self) -> None:
        """The client reads too slowly. Its pings are not answered meanwhile either."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """It has caught up."""
        super().resume_writing()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    async def receive(self) -> Any:
        """The next message, once the replies to those before it can leave."""
        await self.writable.wait()
        return await super().receive()

    async def send(self, message: Any) -> None:
        """Send a message of the application."""
        await super().send(message)
        if message["type"] == "websocket.close":
            self._abort_after(self.close_timeout + _LINGER_SECONDS)

    def shutdown(self) -> None:
        """The server stops: the application closes the connection when it has answered."""
        if self.handshake_complete and not self.close_sent and not self.disconnected:
            message: Any = {"type": STOP}
            self.queue.put_nowait(message)
        elif self.handshake_complete or self.initial_response or self.close_sent:
            super().shutdown()
        else:
            self._refuse_for_now()
            self.transport.close()

    def _refuse_for_now(self) -> None:
        """There is no connection yet, and nothing was done: a 500 would say that something went wrong."""
        from a2a_host.bindings.errors import error_headers, jsonrpc_error  # Django is set up by now.
        from a2a_host.bindings.http import JSON
        from a2a_host.bindings.jsonrpc import NO_ID

        error = UnavailableError(retry_after=1)
        response = self.conn.reject(503, jsonrpc_error(error, NO_ID).decode())
        del response.headers["Content-Type"]
        for name, value in [(b"Content-Type", JSON), *error_headers(error)]:
            response.headers[name.decode()] = value.decode()
        self.conn.send_response(response)
        self.transport.write(b"".join(self.conn.data_to_send()))

    def keepalive_timeout(self) -> None:
        """No answer to a ping: what the client did not read is thrown away."""
        super().keepalive_timeout()
        self._abort_after(_LINGER_SECONDS)

    def handle_parser_exception(self) -> None:
        """A message that is too big, or no WebSocket: say so, and read on for a moment so that the client hears it."""
        close = self.conn.close_sent
        if close is None:  # There is no connection yet that could be closed with a code.
            self.transport.close()
            return
        if self.close_sent:
            return
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close.code, "reason": close.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.stop_keepalive()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)
        self._abort_after(2 * _LINGER_SECONDS)

    def _abort_after(self, seconds: float) -> None:
        self.loop.call_later(seconds, self.transport.abort)
