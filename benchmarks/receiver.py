"""A webhook receiver that answers at once: in the process of the load client, so that it knows when what arrived."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, cast

PATIENCE = 60.0  # seconds that the deliveries of a measurement may take
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Notification:
    """One delivery: when it was here, in seconds since the epoch, and its body."""

    at: float
    body: bytes

    @property
    def update(self) -> dict[str, Any]:
        """What it tells of, without the name of its kind."""
        ((_, update),) = json.loads(self.body).items()
        found: dict[str, Any] = update
        return found

    @property
    def state(self) -> str | None:
        """The state that it reports; None for an artifact."""
        status = self.update.get("status")
        return status["state"] if status else None


class Receiver:
    """Serves on a listening socket while the block runs. Notifications are kept by the path that they came to."""

    def __init__(self, listener: socket.socket) -> None:
        self.notifications: dict[str, list[Notification]] = defaultdict(list)
        self._listener = listener
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        # The listener lives on: other measurements use it too.
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self._take), sock=self._listener.dup()
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    def url(self, path: str) -> str:
        """Where a path answers."""
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}{path}"

    async def until(self, condition: Callable[[], object]) -> None:
        """Return when it holds. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def _take(self, path: str, body: bytes) -> None:
        self.notifications[path].append(Notification(time.time(), body))
        self._changed.set()


class _Connection(asyncio.Protocol):
    """Requests of one client, one after the other."""

    def __init__(self, take: Callable[[str, bytes], None]) -> None:
        self._take = take
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._data += data
        while (request := self._whole_request()) is not None:
            self._take(*request)
            self._transport.write(_ANSWER)

    def _whole_request(self) -> tuple[str, bytes] | None:
        head, separator, rest = self._data.partition(b"\r\n\r\n")
        if not separator:
            return None
        line, *fields = head.decode("latin-1").split("\r\n")
        lengths = [value for name, _, value in (f.partition(":") for f in fields) if name.lower() == "content-length"]
        length = int(lengths[0])
        if len(rest) < length:
            return None
        self._data = rest[length:]
        return line.split(" ")[1], rest[:length]
