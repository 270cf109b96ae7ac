"""One HTTP/1.1 connection of the host to somebody else: h11 reads and writes, asyncio moves the bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

import h11

from agents.outbound.rules import OutboundError, OutboundRules, Target

CONNECT_SECONDS = 10.0
REPLY_BYTES = 64 * 1024
"""Of a reply nothing beyond is read."""
_CHUNK = 64 * 1024

Headers = Sequence[tuple[bytes, bytes]]


class BrokenError(OutboundError):
    """The connection broke before a valid reply; `silent` if nothing at all came back."""

    def __init__(self, silent: bool) -> None:
        super().__init__("the connection broke before a valid reply")
        self.silent = silent


@dataclass(frozen=True, slots=True)
class Reply:
    """What the other side said: `body` is cut off at REPLY_BYTES."""

    status: int
    body: bytes

    @property
    def accepted(self) -> bool:
        """Whether it is a 2xx (§4.3.3)."""
        return 200 <= self.status < 300


class Connection:
    """Takes one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=REPLY_BYTES)
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        """Whether another request may be sent, as far as anybody knows here."""
        return self._http.our_state is h11.IDLE and not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        """Drop it at once."""
        self._writer.transport.abort()

    async def request(self, method: str, target: bytes, headers: Headers, body: bytes) -> Reply:
        """Send a request, and say what came back. Raises BrokenError."""
        heard = False
        try:
            request = h11.Request(method=method, target=target, headers=list(headers))
            parts = [self._http.send(request), self._http.send(h11.Data(data=body))]
            self._writer.write(b"".join(part or b"" for part in [*parts, self._http.send(h11.EndOfMessage())]))
            await self._writer.drain()
            status, content = 0, b""
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    data = await self._reader.read(_CHUNK)
                    heard = heard or bool(data)
                    self._http.receive_data(data)
                elif isinstance(event, h11.Response):
                    status = event.status_code
                elif isinstance(event, h11.Data):
                    content += event.data[: REPLY_BYTES - len(content)]
                    if len(content) >= REPLY_BYTES:
                        return Reply(status, content)
                elif isinstance(event, h11.EndOfMessage):
                    if self._http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                        self._http.start_next_cycle()
                    return Reply(status, content)
                elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    raise BrokenError(silent=False)
        except (OSError, h11.ProtocolError) as error:
            raise BrokenError(silent=not heard) from error


async def connect(target: Target, rules: OutboundRules, tls: ssl.SSLContext) -> Connection:
    """A connection to the first of a host's addresses that takes one. Only addresses that the rules permit are dialled;
    TLS still asks for the host by its name. Raises OutboundError, ForbiddenUrlError."""
    secure = target.url.scheme == "https"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            for address in await rules.addresses(target.host, target.port):
                try:
                    reader, writer = await asyncio.open_connection(
                        address,
                        target.port,
                        ssl=tls if secure else None,
                        server_hostname=target.host if secure else None,
                    )
                except OSError:  # that of TLS is one, too
                    continue
                return Connection(reader, writer)
    except TimeoutError:
        raise OutboundError(f"no connection within {CONNECT_SECONDS:.0f} s") from None
    raise OutboundError("the connection failed")
