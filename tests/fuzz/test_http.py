"""20,000 bad requests (with the other bindings): no reply gives away the inside, and what is refused is not stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import note

from tests.fuzz.conftest import KEY, inputs
from tests.fuzz.http_inputs import KINDS, Request
from tests.fuzz.judging import judge, judge_rest, judge_rpc, task_ids
from tests.fuzz.stored import Ledger
from tests.support.deployment import Deployment, Web
from tests.support.wire import Connection

COUNTS = {"jsonrpc-1.0": 4500, "jsonrpc-0.3": 3000, "rest-1.0": 4000, "rest-0.3": 2500, "task-rest": 1000}

pytestmark = pytest.mark.timeout(0)


class Line:
    """A connection that is opened again whenever the server has closed it. A reply that takes 20 s is a hang."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: Connection | None = None

    def ask(self, request: Request) -> tuple[int, str, bytes]:
        """(status, content type, body) of the reply."""
        raw = request.raw(KEY)
        note(f"sent: {raw!r}")
        connection = self._connection or Connection(self._port)
        self._connection = None
        connection.send(raw)
        while connection.read_head() < 200:
            pass
        body = b"" if request.verb == "HEAD" else connection.read_body()
        if connection.header("connection") == "close" or (connection.status == 400 and not body.startswith(b"{")):
            connection.close()
        else:
            self._connection = connection
        return connection.status, connection.header("content-type") or "", body

    def close(self) -> None:
        """Hang up."""
        if self._connection:
            self._connection.close()


@pytest.fixture
def line(web: Web) -> Iterator[Line]:
    line = Line(web.port)
    yield line
    line.close()


@pytest.mark.parametrize("kind", list(KINDS))
def test_bad_requests(line: Line, deployment: Deployment, kind: str) -> None:
    ledger = Ledger(deployment)

    @inputs(COUNTS[kind], KINDS[kind])
    def try_one(request: Request) -> None:
        status, content_type, body = line.ask(request)
        if request.verb == "HEAD":
            assert status < 500  # its body is said, not sent
            return
        for document in judge(status, content_type, body):
            ledger.add(task_ids(_said(status, document)))
        if status == 204:
            ledger.accept_unseen()

    try_one()
    ledger.settle()


def _said(status: int, document: Any) -> Any:
    """What a reply says in either binding: only JSON-RPC names itself."""
    if isinstance(document, dict) and "jsonrpc" in document:
        return judge_rpc(document)
    return judge_rest(status, document)
