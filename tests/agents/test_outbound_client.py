"""What happens on the wire when the host calls a URL that a caller chose."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from ipaddress import ip_address

import pytest
import pytest_asyncio

from agents.outbound import client as outbound
from agents.outbound.allowed import read_allowed
from agents.outbound.client import OutboundClient
from agents.outbound.rules import ForbiddenUrlError, OutboundError, OutboundRules
from tests.support.receiver import Receiver, Reply


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest_asyncio.fixture
async def client() -> AsyncIterator[OutboundClient]:
    client = OutboundClient(OutboundRules(read_allowed(["127.0.0.1"])))
    yield client
    await client.aclose()


@pytest_asyncio.fixture
async def strict_client() -> AsyncIterator[OutboundClient]:
    """Without any exception."""
    client = OutboundClient(OutboundRules([]))
    yield client
    await client.aclose()


async def test_posts_what_it_is_given(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answers["/given?a=b"] = lambda _: Reply(201, body=b"thanks")
    reply = await client.post(receiver.url("/given?a=b"), b"{}", [("Content-Type", "text/x"), ("X-Y", "z")])
    assert (reply.status, reply.body, reply.accepted) == (201, b"thanks", True)
    (delivery,) = receiver.deliveries("/given?a=b")
    assert delivery.body == b"{}"
    assert delivery.headers == {
        "host": f"127.0.0.1:{receiver.port}",
        "user-agent": "a2a-host",
        "accept": "*/*",
        "content-length": "2",
        "content-type": "text/x",
        "x-y": "z",
    }


async def test_redirects_are_replies_like_others(client: OutboundClient, receiver: Receiver) -> None:
    for status in (301, 302, 303, 307, 308):
        receiver.answers["/moved"] = lambda _, status=status: Reply(status, {"location": receiver.url("/elsewhere")})  # type: ignore[misc]
        reply = await client.post(receiver.url("/moved"), b"{}", [("Authorization", "Bearer s3")])
        assert (reply.status, reply.accepted) == (status, False)
    assert receiver.deliveries("/elsewhere") == []


async def test_no_socket_is_opened_to_a_forbidden_address(strict_client: OutboundClient, receiver: Receiver) -> None:
    for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"):
        with pytest.raises(ForbiddenUrlError):
            await strict_client.post(f"http://{host}:{receiver.port}/forbidden", b"{}", [])
    assert receiver.deliveries("/forbidden") == []


async def test_the_address_that_is_dialled_is_the_one_that_is_checked(
    strict_client: OutboundClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that gives a public address first and a private one when it is asked again."""
    answers = iter([[ip_address("8.8.8.8")], [ip_address("127.0.0.1")]])
    monkeypatch.setattr("agents.outbound.rules._look_up", lambda host, port: next(answers))
    url = f"http://rebinding.test:{receiver.port}/rebound"
    await OutboundRules([]).check(url)
    with pytest.raises(ForbiddenUrlError):
        await strict_client.post(url, b"{}", [])
    assert receiver.deliveries("/rebound") == []


async def test_tries_the_addresses_in_turn(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [ip_address("::1"), ip_address("127.0.0.1")]
    monkeypatch.setattr("agents.outbound.rules._look_up", lambda host, port: found)
    client = OutboundClient(OutboundRules(read_allowed(["two.test"])))
    assert (await client.post(f"http://two.test:{receiver.port}/second", b"{}", [])).status == 200
    await client.aclose()
    assert receiver.deliveries("/second")[0].headers["host"] == f"two.test:{receiver.port}"


async def test_a_reply_is_read_up_to_its_limit(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answers["/long"] = lambda _: Reply(200, body=b"x" * (outbound.REPLY_BYTES + 1000))
    reply = await client.post(receiver.url("/long"), b"{}", [])
    assert reply.body == b"x" * outbound.REPLY_BYTES


async def test_who_does_not_answer_is_given_up(client: OutboundClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "TOTAL_SECONDS", 0.2)
    refusal = pytest.raises(OutboundError, match=r"^no reply within 0 s$")
    with socket.create_server(("127.0.0.1", 0)) as silent, refusal:
        await client.post(f"http://127.0.0.1:{silent.getsockname()[1]}/", b"{}", [])


async def test_who_is_not_there_or_talks_nonsense_is_an_error(client: OutboundClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def babble() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"this is no HTTP\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        with pytest.raises(OutboundError, match=r"^the connection broke before a valid reply$"):
            await client.post(f"http://127.0.0.1:{port}/", b"{}", [])
        thread.join()
    with pytest.raises(OutboundError, match=r"^the connection failed$"):
        await client.post(f"http://127.0.0.1:{port}/", b"{}", [])
