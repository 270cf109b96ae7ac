"""Just enough HTTP/1.1 for a load client: requests as bytes, responses read piece by piece.

A hand-written reader costs a few microseconds a response, several times less than an HTTP library,
so that on a small machine the server and not the client is the limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

JSON = "application/json"


class WireError(Exception):
    """What came over the connection is not a whole HTTP/1.1 response."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. Only loopback: a load client must not be pointed at somebody else's machine."""

    host: str
    port: int
    path: str
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, url: str, headers: dict[str, str] | None = None) -> Endpoint:
        """An endpoint from `http://127.0.0.1:PORT/path`. Raises ValueError for any host but loopback."""
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "localhost") or parts.port is None:
            raise ValueError(f"not http on a loopback port: {url}")
        return cls(parts.hostname, parts.port, parts.path or "/", tuple((headers or {}).items()))

    def request(
        self, method: str, suffix: str = "", body: bytes | None = None, accept: str = JSON, version: str = "1.0"
    ) -> bytes:
        """One request as bytes; `suffix` is appended to the path. §3.6.1: every call names its version."""
        lines = [
            f"{method} {self.path}{suffix} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Accept: {accept}",
            f"A2A-Version: {version}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


class ResponseReader:
    """Reads one response from the bytes of a connection, in pieces as they come.

    `done` is true once the response is whole; `keep` then says whether the connection can be used again.
    """

    def __init__(self) -> None:
        self.status = 0
        self.done = False
        self.keep = True
        self._buffer = b""
        self._in_body = False
        self._left = 0  # bytes missing from a body of known length
        self._chunked = False
        self._until_close = False

    def feed(self, data: bytes) -> bytes:
        """Take what the connection brought; returns the bytes of the body in it. Raises WireError."""
        if self.done:
            raise WireError("bytes after the end of the response")
        self._buffer = self._buffer + data if self._buffer else data
        if not self._in_body and not self._read_head():
            return b""
        if self._chunked:
            return self._read_chunks()
        return self._read_plain()

    def end(self) -> None:
        """The peer closed the connection. Raises WireError if the response is not whole."""
        if self._until_close:
            self.done = True
        if not self.done:
            raise WireError("connection closed before the end of the response")

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self._buffer[:end].lower()
        if not head.startswith(b"http/1.1 "):
            raise WireError(f"not an HTTP/1.1 response: {head[:40]!r}")
        self.status = int(head[9:12])
        fields = dict(line.split(b":", 1) for line in head.split(b"\r\n")[1:])
        self.keep = fields.get(b"connection", b"").strip() != b"close"
        self._chunked = fields.get(b"transfer-encoding", b"").strip() == b"chunked"
        length = fields.get(b"content-length")
        self._until_close = length is None and not self._chunked and self.status not in (204, 304)
        self._left = int(length) if length is not None else 0
        self._in_body = True
        self._buffer = self._buffer[end + 4 :]
        return True

    def _read_plain(self) -> bytes:
        piece, self._buffer = self._buffer, b""
        if self._until_close:
            self.keep = False
            return piece
        self._left -= len(piece)
        if self._left < 0:
            raise WireError("more bytes than Content-Length says")
        self.done = self._left == 0
        return piece

    def _read_chunks(self) -> bytes:
        """The whole chunks of the buffer, which may be thousands."""
        pieces, buffer, at = [], self._buffer, 0
        while not self.done:
            line = buffer.find(b"\r\n", at)
            if line < 0:
                break
            size = int(buffer[at:line], 16)
            start, end = line + 2, line + 2 + size
            if len(buffer) < end + 2:
                break
            if buffer[end : end + 2] != b"\r\n":
                raise WireError("chunk without its end")
            pieces.append(buffer[start:end])
            at = end + 2
            self.done = size == 0
        self._buffer = buffer[at:]
        if self.done and self._buffer:
            raise WireError("bytes after the end of the response")
        return b"".join(pieces)
