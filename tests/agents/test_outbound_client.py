"""What happens on the wire when the host calls a URL that a caller chose."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import httpx
import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from agents.outbound import client as outbound
from agents.outbound.client import REPLY_BYTES, OutboundClient
from agents.outbound.listed import read_list
from agents.outbound.rules import ForbiddenUrlError, OutboundError, OutboundRules, normal_host, read_url
from tests.support.receiver import Receiver, Reply


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest_asyncio.fixture
async def client() -> AsyncIterator[OutboundClient]:
    client = OutboundClient(OutboundRules(read_list(["127.0.0.1"])))
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
    reply = await client.request("POST", receiver.url("/given?a=b"), [("Content-Type", "text/x"), ("X-Y", "z")], b"{}")
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
        reply = await client.request("POST", receiver.url("/moved"), [("Authorization", "Bearer s3")], b"{}")
        assert (reply.status, reply.accepted) == (status, False)
    assert receiver.deliveries("/elsewhere") == []


async def test_no_socket_is_opened_to_a_forbidden_address(strict_client: OutboundClient, receiver: Receiver) -> None:
    for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"):
        with pytest.raises(ForbiddenUrlError):
            await strict_client.request("POST", f"http://{host}:{receiver.port}/forbidden", [], b"{}")
    assert receiver.deliveries("/forbidden") == []


async def test_the_address_that_is_dialled_is_the_one_that_is_checked(receiver: Receiver) -> None:
    """A name server that gives a public address first and a private one when it is asked again."""
    answers = iter([[ip_address("8.8.8.8")], [ip_address("127.0.0.1")]])
    rules = OutboundRules([], look_up=lambda host: next(answers))
    url = f"http://rebinding.test:{receiver.port}/rebound"
    await rules.check(url)
    client = OutboundClient(rules)
    with pytest.raises(ForbiddenUrlError):
        await client.request("POST", url, [], b"{}")
    await client.aclose()
    assert receiver.deliveries("/rebound") == []


ODD_URLS = {
    "http://user@e.test/": None,
    "http://e.test:80@127.0.0.1/": None,
    "http://a@b@e.test/": None,
    "http://@e.test/": ("e.test", 80),
    "http://e.test\\@127.0.0.1/": None,
    "http://e.test\\.example/": None,
    "http://e.test?x@127.0.0.1/": ("e.test", 80),
    "http://e.test#@127.0.0.1/": ("e.test", 80),
    "http://e.test/@127.0.0.1/../x": ("e.test", 80),
    "http://127.0.0.1%2f@e.test/": None,
    "http://e%2etest/": None,
    "http://%65.test/": None,
    "http://127%2e0.0.1/": None,
    "http://ы.test/": ("xn--01a.test", 80),
    "http://faß.test/": ("xn--fa-hia.test", 80),
    "http://e\N{IDEOGRAPHIC FULL STOP}test/": ("e.test", 80),
    "http://127\N{IDEOGRAPHIC FULL STOP}0\N{IDEOGRAPHIC FULL STOP}0\N{IDEOGRAPHIC FULL STOP}1/": ("127.0.0.1", 80),
    "http://\N{FULLWIDTH LATIN SMALL LETTER E}.test/": None,
    "http://\N{CIRCLED DIGIT ONE}27.0.0.1/": None,
    "http://e\N{SOFT HYPHEN}.test/": None,
    "http://E.TEST.:8080/": ("e.test", 8080),
    "http://e.test../": None,
    "http://127.0.0.1./": ("127.0.0.1", 80),
    "http://[fe80::1%25eth0]/": ("fe80::1%25eth0", 80),
    "http://[::FFFF:127.0.0.1]:81/": ("::ffff:127.0.0.1", 81),
    "http://[::1]e.test/": None,
    "http://[e.test]/": None,
    "http://[v1.127]/": None,
    "http://2130706433/": ("2130706433", 80),
    "http://0177.1/": ("0177.1", 80),
    "http://0X7F.1/": ("0x7f.1", 80),
    "http://e.test:0080/": ("e.test", 80),
    "https://e.test:/": ("e.test", 443),
    "http://e.test:80:81/": None,
    "http:e.test": None,
    "http:/e.test/": None,
    "http:///e.test/": None,
}


@pytest.mark.spec("13.2")
@pytest.mark.parametrize(("url", "leads_to"), ODD_URLS.items(), ids=ascii)
async def test_the_host_that_is_dialled_is_the_one_that_was_read(
    monkeypatch: pytest.MonkeyPatch, url: str, leads_to: tuple[str, int] | None
) -> None:
    """Every spelling is refused, or means the same to who checks, to who sends, and to another reader of URLs."""
    dialled: list[tuple[str, int]] = []

    async def note(connector: aiohttp.TCPConnector, host: str, port: int, traces: object = None) -> None:
        dialled.append((normal_host(host), port))
        raise OSError

    monkeypatch.setattr(aiohttp.TCPConnector, "_resolve_host", note)
    client = OutboundClient(OutboundRules(read_list(["0.0.0.0/0", "::/0"])))
    with pytest.raises(OutboundError) as refusal:
        await client.request("POST", url, [], b"{}")
    await client.aclose()
    if leads_to is None:
        assert (type(refusal.value), dialled) == (ForbiddenUrlError, [])
        return
    target, other = read_url(url), httpx.URL(url)
    assert (target.host, target.port) == leads_to
    assert dialled == [leads_to]
    assert normal_host(other.raw_host.decode()) == leads_to[0]


async def test_tries_the_addresses_in_turn(receiver: Receiver) -> None:
    found = [ip_address("::1"), ip_address("127.0.0.1")]
    client = OutboundClient(OutboundRules(read_list(["two.test"]), look_up=lambda host: found))
    assert (await client.request("POST", f"http://two.test:{receiver.port}/second", [], b"{}")).status == 200
    await client.aclose()
    assert receiver.deliveries("/second")[0].headers["host"] == f"two.test:{receiver.port}"


async def test_tls_asks_for_the_host_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The address is dialled, but the certificate has to be that of the name."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    asked: list[str | None] = []
    context = server_context(tmp_path, "hooks.test")
    context.sni_callback = lambda tls, name, _: asked.append(name)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=answer_twice, args=(server, context))
        thread.start()
        rules = OutboundRules(read_list(["127.0.0.1"]), look_up=lambda host: [ip_address("127.0.0.1")])
        client = OutboundClient(rules)
        assert (await client.request("POST", f"https://hooks.test:{port}/", [], b"{}")).status == 204
        with pytest.raises(OutboundError, match=r"^the connection failed$"):
            await client.request("POST", f"https://other.test:{port}/", [], b"{}")
        await client.aclose()
        await asyncio.to_thread(thread.join)
    assert asked == ["hooks.test", "other.test"]


def server_context(folder: Path, name: str) -> ssl.SSLContext:
    """Of a server whose certificate, in `cert.pem`, is for one name and signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def answer_twice(server: socket.socket, context: ssl.SSLContext) -> None:
    """Take two connections; the client leaves the second one when it sees the certificate."""
    for _ in range(2):
        connection, _ = server.accept()
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as tls:
            request = b""
            while not request.endswith(b"\r\n\r\n{}"):
                request += tls.recv(10_000)
            tls.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")


async def test_a_reply_is_read_up_to_its_limit(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answers["/long"] = lambda _: Reply(200, body=b"x" * (REPLY_BYTES + 1000))
    reply = await client.request("POST", receiver.url("/long"), [], b"{}")
    assert reply.body == b"x" * REPLY_BYTES


async def test_who_does_not_answer_is_given_up(client: OutboundClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "TOTAL_SECONDS", 0.2)
    refusal = pytest.raises(OutboundError, match=r"^no reply within 0 s$")
    with socket.create_server(("127.0.0.1", 0)) as silent, refusal:
        await client.request("POST", f"http://127.0.0.1:{silent.getsockname()[1]}/", [], b"{}")


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
            await client.request("POST", f"http://127.0.0.1:{port}/", [], b"{}")
        thread.join()
    with pytest.raises(OutboundError, match=r"^the connection failed$"):
        await client.request("POST", f"http://127.0.0.1:{port}/", [], b"{}")


class Counting:
    """A server that answers on each connection as often as it is told, then closes it."""

    def __init__(self, answers: int) -> None:
        self.connections = 0
        self.requests = 0
        self._answers = answers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self._answers):
            head = await reader.readuntil(b"\r\n\r\n")
            if b"content-length: 2" in head.lower():
                await reader.readexactly(2)
            self.requests += 1
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()


async def test_a_connection_is_used_again(client: OutboundClient) -> None:
    counting = Counting(answers=3)
    async with await asyncio.start_server(counting.serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(3):
            assert (await client.request("POST", url, [], b"{}")).body == b"ok"
        assert (counting.connections, counting.requests) == (1, 3)


async def test_a_kept_connection_that_the_other_side_closed_is_no_failure(client: OutboundClient) -> None:
    """Whether the host has noticed by then or not."""
    counting = Counting(answers=1)
    async with await asyncio.start_server(counting.serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(5):
            assert (await client.request("POST", url, [], b"{}")).status == 200
        assert (counting.connections, counting.requests) == (5, 5)


async def test_a_request_is_repeated_once(client: OutboundClient) -> None:
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await reader.readuntil(b"\r\n\r\n")
        requests += 1
        writer.write(b"HTTP/1.1 200 OK\r\nConte")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(OutboundError, match=r"^the connection broke before a valid reply$"):
            await client.request("POST", url)
        assert requests == 2


async def test_an_endless_reply_costs_a_little_memory_and_its_connection(client: OutboundClient) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(OSError):
            while True:
                writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        reply = await client.request("POST", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", [], b"{}")
        assert reply.body == b"x" * REPLY_BYTES


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, b"\x00" * 100, b"HTTP/1.1 99999 No\r\n\r\n"]
)
async def test_a_reply_that_is_none_is_an_error(client: OutboundClient, head: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        with suppress(OSError):
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        with pytest.raises(OutboundError, match=r"^the connection broke before a valid reply$"):
            await client.request("POST", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", [], b"{}")
