"""Bad messages on WebSocket connections: an error for each that has an id, and the connection goes on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import note
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.fuzz.conftest import KEY, inputs
from tests.fuzz.documents import V0_3, V1, Document
from tests.fuzz.http_inputs import own_id
from tests.fuzz.judging import judge, judge_rpc
from tests.fuzz.spoiling import Draw, body
from tests.fuzz.stored import Ledger
from tests.support.deployment import Deployment, Web

COUNT = 2000
# Closed by us: no text, not UTF-8, too big. Never 1011, an internal error.
CLOSE_CODES = (1003, 1007, 1009)

pytestmark = pytest.mark.timeout(0)


@st.composite
def messages(drawn: st.DrawFn) -> bytes:
    """Bytes of a text message."""
    draw = Draw(drawn)
    methods: dict[str, Document] = V1 if draw.below(2) else V0_3
    names = list(methods)
    method = names[draw.below(len(names))]
    params = own_id(draw, methods[method])
    return body(draw, {"jsonrpc": "2.0", "id": draw(st.integers(1, 2**40)), "method": method, "params": params})


class Line:
    """A connection that is opened again when the server has closed it."""

    def __init__(self, web: Web) -> None:
        self._url = web.agent_url("echo").replace("http:", "ws:") + "/ws"
        self._connection: ClientConnection | None = None
        self._open = ExitStack()
        self._marks = itertools.count()

    def ask(self, text: bytes) -> None:
        """Send a message and then one that is certainly answered; judge all replies up to that one's."""
        mark = f"mark-{next(self._marks)}"
        connection = self._connection = self._connection or self._connect()
        try:
            connection.send(text, text=True)
            connection.send(json.dumps({"jsonrpc": "2.0", "id": mark, "method": "Nothing"}))
            while True:
                reply = connection.recv(timeout=20)
                assert isinstance(reply, str)
                (document,) = judge(200, "application/json", reply.encode())
                judge_rpc(document)
                if document["id"] == mark:
                    return
        except ConnectionClosed as closed:
            self.close()
            if closed.rcvd is None or closed.rcvd.code not in CLOSE_CODES:
                raise

    def close(self) -> None:
        """Hang up."""
        self._open.close()
        self._connection = None

    def _connect(self) -> ClientConnection:
        headers = {"Authorization": f"Bearer {KEY}"}
        return self._open.enter_context(connect(self._url, additional_headers=headers, proxy=None, compression=None))


@pytest.fixture
def line(web: Web) -> Iterator[Line]:
    line = Line(web)
    yield line
    line.close()


def test_bad_messages(line: Line, deployment: Deployment) -> None:
    ledger = Ledger(deployment)

    @inputs(COUNT, messages())
    def try_one(text: bytes) -> None:
        note(f"sent: {text!r}")
        line.ask(text)

    try_one()
    line.close()
    ledger.accept_unseen()  # replies come in any order, some after the mark
    ledger.settle()
