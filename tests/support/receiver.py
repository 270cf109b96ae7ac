"""A webhook receiver: an HTTP server on loopback that keeps what it was sent and answers as the test says."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.support.deployment import HOST, wait_until


@dataclass(slots=True)
class Delivery:
    """One request as it came: header names in lower case; `ended` is when it was answered, 0 while it is not, and
    `status` what the answer was."""

    path: str
    headers: dict[str, str]
    body: bytes
    started: float
    ended: float = 0.0
    status: int = 0

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def state(self) -> str | None:
        """The state that a 1.0 notification reports, None for anything but a status."""
        update = self.json.get("statusUpdate")
        return update["status"]["state"] if update else None


Answer = Callable[[int], "int | Reply"]
"""The reply to the n-th request of a path, from 0."""


@dataclass(slots=True)
class Reply:
    """A reply with more than a status."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that hangs up is no error of the receiver; anything else is reported."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Receiver:
    """Takes POSTs on any path; each path keeps its own deliveries and answers as `answers` says, or as `otherwise`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deliveries: dict[str, list[Delivery]] = {}
        self.answers: dict[str, Answer] = {}
        self.otherwise: Answer = lambda _: 200
        self._server = _Server((HOST, 0), self._handler())
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str) -> str:
        """Where a path answers, such as `/hook`."""
        return f"http://{HOST}:{self.port}{path}"

    def deliveries(self, path: str) -> list[Delivery]:
        """What came to a path and was answered, in the order of arrival."""
        with self._lock:
            return [d for d in self._deliveries.get(path, ()) if d.ended]

    def requests(self) -> dict[str, list[Delivery]]:
        """What came to each path, answered or not, in the order of arrival."""
        with self._lock:
            return {path: list(kept) for path, kept in self._deliveries.items()}

    def arrived(self, path: str) -> int:
        """How many requests came to a path, answered or not."""
        with self._lock:
            return len(self._deliveries.get(path, ()))

    def wait(self, path: str, count: int) -> list[Delivery]:
        """The deliveries of a path once there are at least so many."""

        def enough() -> list[Delivery]:
            found = self.deliveries(path)
            return found if len(found) >= count else []

        return wait_until(enough, f"{count} deliveries to {path}, not {self.deliveries(path)}")

    def wait_for_state(self, path: str, state: str) -> list[Delivery]:
        """The deliveries of a path once one of them reports a state."""

        def reported() -> list[Delivery]:
            found = self.deliveries(path)
            return found if any(d.state == state for d in found) else []

        return wait_until(reported, f"{state} at {path}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = self.rfile.read(length)
                if len(body) < length:  # the caller was killed in the middle of it
                    self.close_connection = True
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = receiver._take(Delivery(self.path, headers, body, time.monotonic()))
                self.send_response(reply.status)
                for name, value in ({"content-length": str(len(reply.body))} | reply.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler

    def _take(self, delivery: Delivery) -> Reply:
        with self._lock:
            kept = self._deliveries.setdefault(delivery.path, [])
            number = len(kept)
            kept.append(delivery)
        answer = self.answers.get(delivery.path, self.otherwise)(number)
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        delivery.status = reply.status
        delivery.ended = time.monotonic()
        return reply
