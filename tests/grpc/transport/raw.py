"""A client of HTTP/2 that sends whatever it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError
from hyperframe.frame import Frame

E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=Frame)

_CONFIG = H2Configuration(
    client_side=True, header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
)


@dataclass
class Answer:
    """What came on a stream. `reset` is the code of a RST_STREAM."""

    headers: dict[str, str] = field(default_factory=dict)
    data: bytes = b""
    trailers: dict[str, str] = field(default_factory=dict)
    reset: int | None = None

    @property
    def status(self) -> tuple[str | None, str | None]:
        """grpc-status and grpc-message, wherever they are."""
        found = self.headers | self.trailers
        return found.get("grpc-status"), found.get("grpc-message")


class Raw:
    """One connection. Nothing is acknowledged of data that comes, unless asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.http2 = H2Connection(_CONFIG)
        self.events: list[Event] = []
        self.open = True

    def write(self, *frames: Frame | bytes) -> None:
        """Send frames as they are, after what h2 has to say."""
        self.writer.write(self.http2.data_to_send())
        self.writer.write(b"".join(f if isinstance(f, bytes) else f.serialize() for f in frames))

    def request(self, path: str = "/test/Echo", end: bool = False, **changes: str | None) -> int:
        """Begin a call; `changes` are fields, with `_` for `-` and for a first `:`, and None for those left out."""
        fields: dict[str, str | None] = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": "test",
            "content-type": "application/grpc",
            "te": "trailers",
        }
        for name, value in changes.items():
            fields[":" + name[1:] if name.startswith("_") else name.replace("_", "-")] = value
        return self.headers([(name, value) for name, value in fields.items() if value is not None], end)

    def headers(self, fields: list[tuple[str, str]], end: bool = False) -> int:
        """Begin a stream with these very fields."""
        stream_id = self.http2.get_next_available_stream_id()
        self.http2.send_headers(stream_id, fields, end_stream=end)
        return stream_id

    def send(self, stream_id: int, message: bytes, end: bool = True) -> None:
        """One whole message."""
        self.http2.send_data(stream_id, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=end)

    async def wait(self, kind: type[E], stream_id: int | None = None) -> E:
        """The next event of a kind, of a stream if one is named. Others stay."""
        while True:
            for event in self.events:
                if isinstance(event, kind) and stream_id in (None, getattr(event, "stream_id", None)):
                    self.events.remove(event)
                    return event
            assert self.open, f"the connection ended without {kind.__name__}: {self.events}"
            await self._read()

    async def answer(self, stream_id: int) -> Answer:
        """All of a stream, to its end."""
        answer = Answer()
        while True:
            event: Any = await self.wait(Event, stream_id)
            if isinstance(event, ResponseReceived):
                answer.headers = dict(event.headers)
            elif isinstance(event, TrailersReceived):
                answer.trailers = dict(event.headers)
            elif isinstance(event, DataReceived):
                answer.data += event.data
            elif isinstance(event, StreamReset):
                answer.reset = int(event.error_code)
                return answer
            elif isinstance(event, StreamEnded):
                return answer

    async def may_send(self, stream_id: int) -> bool:
        """Wait for something to come: whether the stream is still open then."""
        await self._read()
        return not any(isinstance(event, StreamReset) and event.stream_id == stream_id for event in self.events)

    async def ended(self) -> int | None:
        """The code of the last GOAWAY, when the connection has ended."""
        while self.open:
            await self._read()
        codes = [int(event.error_code) for event in self.events if isinstance(event, ConnectionTerminated)]
        return codes[-1] if codes else None

    async def frame(self, kind: type[F]) -> F:
        """The next frame of a kind, where h2 would not go on. Others are dropped."""
        while True:
            head = await asyncio.wait_for(self.reader.readexactly(9), 10)
            frame, length = Frame.parse_frame_header(memoryview(head))
            frame.parse_body(memoryview(await self.reader.readexactly(length)))
            if isinstance(frame, kind):
                return frame

    async def echo(self, message: bytes = b"still there") -> bytes:
        """What a call of /test/Echo answers: the connection works."""
        stream_id = self.request()
        self.send(stream_id, message)
        answer = await self.answer(stream_id)
        assert answer.status == ("0", None)
        return answer.data[5:]

    async def _read(self) -> None:
        self.write()
        try:
            data = await asyncio.wait_for(self.reader.read(1 << 20), 10)
        except ConnectionError:
            data = b""
        if not data:
            self.open = False
            return
        try:
            self.events += self.http2.receive_data(data)
        except ProtocolError:  # What this client did wrong shows on its side too.
            self.open = False


@asynccontextmanager
async def connect(port: int, greet: bool = True) -> AsyncIterator[Raw]:
    """A connection to a server of the tests; without a greeting nothing is sent yet."""
    raw = Raw(*await asyncio.open_connection("127.0.0.1", port))
    if greet:
        raw.http2.initiate_connection()
        raw.write()
    try:
        yield raw
    finally:
        raw.writer.transport.abort()
