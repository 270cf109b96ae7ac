"""HTTP/1.1 as bytes on a socket: for requests that no library would send, and to see exactly what comes back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import TracebackType

SECONDS = 20.0
"""How long a read may wait."""


class Connection:
    """One connection to a local server."""

    def __init__(self, port: int, request: bytes = b"") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        if request:
            self.send(request)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._socket.sendall(data)

    def read_head(self) -> int:
        """Read status line and headers into `status` and `headers` (names in lower case); returns the status."""
        head = self._read_until(b"\r\n\r\n").decode("latin-1")
        status_line, *lines = head.split("\r\n")
        version, status, _ = status_line.split(" ", 2)
        assert version == "HTTP/1.1"
        self.status = int(status)
        self.headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        return self.status

    def header(self, name: str) -> str | None:
        """The value of a header that comes at most once."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) < 2, f"{name} is sent {len(values)} times"
        return values[0] if values else None

    def read_body(self) -> bytes:
        """The whole body of the response whose head was read."""
        length = self.header("content-length")
        if length is not None:
            return self._read_exactly(int(length))
        if self.header("transfer-encoding") == "chunked":
            return b"".join(self.chunks())
        return b""

    def chunks(self) -> Iterator[bytes]:
        """The chunks of a chunked body, until the one that ends it."""
        while size := int(self._read_until(b"\r\n"), 16):
            yield self._read_exactly(size)
            assert self._read_exactly(2) == b"\r\n"
        assert self._read_until(b"\r\n") == b""

    def at_end(self) -> bool:
        """Whether the server has closed the connection and everything was read."""
        return not self._buffer and self._socket.recv(1) == b""

    def _read_until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._receive()
        found, self._buffer = self._buffer.split(mark, 1)
        return found

    def _read_exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._receive()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _receive(self) -> None:
        data = self._socket.recv(65536)
        assert data, f"the server closed the connection after {self._buffer[-200:]!r}"
        self._buffer += data


def request(verb: str, path: str, body: bytes = b"", *headers: str, host: str = "127.0.0.1") -> bytes:
    """An HTTP/1.1 request with a Content-Length. `headers` are whole lines, such as `A2A-Version: 1.0`."""
    lines = [f"{verb} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
