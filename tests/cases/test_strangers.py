"""Who has no key for an agent is refused by the headers: the host keeps no body for somebody that it will not serve."""

from __future__ import annotations

import json

import pytest

from tests.support.callers import Caller
from tests.support.peers import message
from tests.support.wire import Connection, request

MIB = 1024 * 1024
READ = 64 * 1024
CHALLENGE = 'Bearer realm="a2a-host"'
INVALID = 'Bearer realm="a2a-host", error="invalid_token"'
WRONG = "Authorization: Bearer wrong"
REST = [
    *("/agents/order-agent/message:send", "/agents/order-agent/message:stream", "/agents/order-agent/v1/message:send"),
    *("/agents/order-agent/tasks", "/a2a-tasks/order-agent/tasks", "/a2a/order-agent/message:send"),
    *("/a2a/order-agent/v1/message:send", "/a2a/message:send?tenant=order-agent"),
]
pytestmark = [pytest.mark.case("U07"), pytest.mark.spec("7.4")]


def announced(path: str, size: int, *headers: str) -> bytes:
    """The head of a POST whose body does not come."""
    head = request("POST", path, b"", "Content-Type: application/json", *headers)
    return head.replace(b"Content-Length: 0", b"Content-Length: %d" % size)


def envelope(size: int, tenant: str = "") -> bytes:
    """A SendMessage of so many bytes, as JSON-RPC."""

    def of(text: str) -> bytes:
        params = {"tenant": tenant, "message": message(text)}
        return json.dumps({"jsonrpc": "2.0", "id": "q1", "method": "SendMessage", "params": params}).encode()

    return of("x" * (size - len(of(""))))


@pytest.mark.parametrize("path", ["/agents/order-agent", "/agents/order-agent/a2a/v1", *REST])
def test_a_stranger_is_refused_before_the_body(anonymous: Caller, path: str) -> None:
    with anonymous.nothing_stored(), Connection(anonymous.web.port, announced(path, MIB)) as connection:
        assert (connection.read_head(), connection.header("www-authenticate")) == (401, CHALLENGE)
        error = json.loads(connection.read_body())
    if path in REST and "v1" not in path:
        assert error["error"]["status"] == "UNAUTHENTICATED"
    elif path not in REST:
        assert (error["id"], error["error"]["code"]) == (None, -32000)


@pytest.mark.parametrize("path", ["/agents/echo", "/agents/echo/message:send", "/a2a", "/a2a/message:send"])
def test_a_wrong_key_is_refused_before_the_body(anonymous: Caller, path: str) -> None:
    """By open agents too, and where the agent is not known yet."""
    with anonymous.nothing_stored(), Connection(anonymous.web.port, announced(path, MIB, WRONG)) as connection:
        assert (connection.read_head(), connection.header("www-authenticate")) == (401, INVALID)


def test_the_body_of_a_stranger_is_read_for_its_id_up_to_a_limit(anonymous: Caller) -> None:
    for size, request_id in ((READ, "q1"), (READ + 1, None)):
        head = request("POST", "/agents/order-agent", envelope(size))
        with anonymous.nothing_stored(), Connection(anonymous.web.port, head) as connection:
            assert connection.read_head() == 401
            assert json.loads(connection.read_body())["id"] == request_id


@pytest.mark.parametrize("path", ["/agents/order-agent", "/a2a"])
def test_a_strangers_chunks_are_counted(anonymous: Caller, path: str) -> None:
    """Without an end in sight the answer comes after 64 KiB."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{WRONG}\r\n\r\n".encode()
    with anonymous.nothing_stored(), Connection(anonymous.web.port, head) as connection:
        for _ in range(5):
            connection.send(b"4000\r\n" + b" " * 16384 + b"\r\n")
        assert connection.read_head() == 401
        assert json.loads(connection.read_body())["id"] is None


def test_the_shared_endpoint_reads_what_an_open_agent_takes(alice: Caller, anonymous: Caller) -> None:
    """Of somebody without a key; whose it is, is in the body."""
    for caller, tenant, status in (
        (anonymous, "data", 200),
        (anonymous, "order-agent", 401),
        (alice, "order-agent", 200),
        (anonymous, "nobody", 404),
    ):
        headers = caller.headers | {"content-type": "application/json"}
        response = caller.client.post(f"{caller.web.url}/a2a", content=envelope(MIB, tenant), headers=headers)
        assert (response.status_code, response.json()["id"]) == (status, "q1")
