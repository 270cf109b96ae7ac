"""Just enough HTTP/2 for a load client: unary gRPC calls of many callers on one connection, as on a channel.

The official client takes several times the processor time of the hand-written HTTP/1.1 one, on cores that the server
needs; this one takes little more.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_LARGEST_WINDOW = 2**31 - 1
_FIRST_WINDOW = 65_535
_INITIAL_WINDOW_SIZE = 4
_HEAD = 9  # bytes before the payload of a frame
_PREFIX = 5  # bytes before a gRPC message


class GrpcError(Exception):
    """A call did not end with the status OK, or what came over the connection is no answer."""


@dataclass(slots=True)
class _Call:
    done: asyncio.Future[bytes]
    body: bytes = b""
    status: str = ""
    message: str = ""


class Channel(asyncio.Protocol):
    """A connection to a server without TLS, for calls of one method; many may be open at once."""

    def __init__(self, authority: str, method: str) -> None:
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", authority),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("a2a-version", "1.0"),
        ]
        encoder = Encoder()
        # Once the server has seen them, headers are numbers in its table.
        self._blocks = [encoder.encode(headers), encoder.encode(headers)]
        self._decoder = Decoder()
        self._calls: dict[int, _Call] = {}
        self._stream = -1
        self._buffer = b""
        self._unsent: list[bytes] = []
        self._credit = _FIRST_WINDOW  # bytes that the server takes of all requests together
        self._lost: GrpcError | None = None

    @classmethod
    async def open(cls, address: str, method: str) -> Channel:
        """A channel to `127.0.0.1:PORT` for `/package.Service/Method`. Raises OSError."""
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_connection(lambda: cls(address, method), host, int(port))
        return channel

    async def call(self, message: bytes) -> bytes:
        """The message that answers. Raises GrpcError."""
        if self._lost is not None:
            raise self._lost
        self._stream += 2
        self._credit -= _PREFIX + len(message)
        if self._credit < 0:
            raise GrpcError("the server's window is used up")
        call = self._calls[self._stream] = _Call(asyncio.get_running_loop().create_future())
        headers = _frame(_HEADERS, _END_HEADERS, self._stream, self._blocks[self._stream > 1])
        body = b"\0" + len(message).to_bytes(4) + message
        self._write(headers + _frame(_DATA, _END_STREAM, self._stream, body))
        return await call.done

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet, with windows that a whole run does not use up."""
        self._transport = cast(asyncio.WriteTransport, transport)
        settings = _INITIAL_WINDOW_SIZE.to_bytes(2) + _LARGEST_WINDOW.to_bytes(4)
        more = (_LARGEST_WINDOW - _FIRST_WINDOW).to_bytes(4)
        self._transport.write(_PREFACE + _frame(_SETTINGS, 0, 0, settings) + _frame(_WINDOW_UPDATE, 0, 0, more))

    def data_received(self, data: bytes) -> None:
        """Read the frames that are whole."""
        buffer, at = self._buffer + data if self._buffer else data, 0
        while len(buffer) - at >= _HEAD:
            end = at + _HEAD + int.from_bytes(buffer[at : at + 3])
            if len(buffer) < end:
                break
            stream = int.from_bytes(buffer[at + 5 : at + _HEAD])
            try:
                self._take(buffer[at + 3], buffer[at + 4], stream, buffer[at + _HEAD : end])
            except (GrpcError, HPACKError) as error:
                self._fail(GrpcError(str(error)))
                return
            at = end
        self._buffer = buffer[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        """The calls under way have no answer."""
        self._fail(GrpcError("the connection was closed"))

    def _write(self, frames: bytes) -> None:
        """Send frames together with those of other callers who go on in this turn of the loop."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(frames)

    def _flush(self) -> None:
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind in (_DATA, _HEADERS):
            self._take_answer(kind, flags, stream, payload)
        elif kind == _SETTINGS and not flags & _ACK:
            self._transport.write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._transport.write(_frame(_PING, _ACK, 0, payload))
        elif kind == _WINDOW_UPDATE and stream == 0:
            self._credit += int.from_bytes(payload)
        elif kind in (_RST_STREAM, _GOAWAY):
            raise GrpcError(f"the server ended {'a call' if kind == _RST_STREAM else 'the connection'}: {payload!r}")

    def _take_answer(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        call = self._calls.get(stream)
        if call is None:
            raise GrpcError("an answer to nothing")
        if flags & ~(_END_STREAM | _END_HEADERS):
            raise GrpcError("padding and priorities are not read")
        if kind == _DATA:
            call.body += payload
        elif not flags & _END_HEADERS:
            raise GrpcError("headers in pieces are not read")
        else:
            for name, value in self._decoder.decode(payload):
                if name == "grpc-status":
                    call.status = value
                elif name == "grpc-message":
                    call.message = value
        if flags & _END_STREAM:
            del self._calls[stream]
            _settle(call)

    def _fail(self, error: GrpcError) -> None:
        self._lost = self._lost or error
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.done.done():
                call.done.set_exception(self._lost)
        self._transport.close()


def _settle(call: _Call) -> None:
    if call.done.done():
        return  # its caller has given up
    if call.status != "0":
        call.done.set_exception(GrpcError(f"status {call.status or 'missing'}: {unquote(call.message)}"))
    elif len(call.body) != _PREFIX + int.from_bytes(call.body[1:_PREFIX]) or call.body[0]:
        call.done.set_exception(GrpcError("not one message without compression"))
    else:
        call.done.set_result(call.body[_PREFIX:])


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload
