"""The connection itself: who may open it, what ends it, and what it takes."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web
from tests.support.peers import envelope
from tests.support.refusals import Refused, refusal_of_rest, refusal_of_rpc
from tests.websocket.conftest import eventually
from tests.websocket.executors import CHUNKS
from tests.websocket.line import Line, open_line, saying, state

pytestmark = [pytest.mark.spec("12"), pytest.mark.timeout(90)]
CALLS_MAX = 100


def in_base64url(key: str | None) -> str:
    return base64.urlsafe_b64encode((key or "").encode()).decode().rstrip("=")


@pytest.mark.spec("12.6")
@pytest.mark.parametrize("way", ["bearer", "x-api-key", "subprotocol"])
async def test_the_key_comes_with_the_upgrade(alice: Caller, way: str) -> None:
    options = {
        "bearer": {"additional_headers": {"Authorization": f"Bearer {alice.key}"}},
        "x-api-key": {"additional_headers": {"X-API-Key": alice.key}},
        "subprotocol": {
            "additional_headers": {},
            "subprotocols": ["a2a.jsonrpc.v1", f"a2a.bearer.{in_base64url(alice.key)}"],
        },
    }[way]
    async with open_line(alice, "echo", **options) as line:
        assert line.connection.subprotocol == ("a2a.jsonrpc.v1" if way == "subprotocol" else None)
        task = (await line.call(1, "SendMessage", saying()))["task"]
    assert [row[0] for row in alice.stored()[0]] == [task["id"]]


@pytest.mark.spec("12.6")
@pytest.mark.parametrize(
    ("slug", "options", "status", "reason", "challenge"),
    [
        ("order-agent", {"additional_headers": {}}, 401, "UNAUTHENTICATED", 'Bearer realm="a2a-host"'),
        (
            "echo",
            {"additional_headers": {"Authorization": "Bearer wrong"}},
            401,
            "UNAUTHENTICATED",
            'Bearer realm="a2a-host", error="invalid_token"',
        ),
        (
            "echo",
            {"additional_headers": {}, "subprotocols": ["a2a.jsonrpc.v1", "a2a.bearer.d3Jvbmc"]},
            401,
            "UNAUTHENTICATED",
            'Bearer realm="a2a-host", error="invalid_token"',
        ),
        (
            "echo",
            {"additional_headers": {}, "subprotocols": ["a2a.jsonrpc.v1", "a2a.bearer.~"]},
            401,
            "UNAUTHENTICATED",
            'Bearer realm="a2a-host", error="invalid_token"',
        ),
        ("hidden", {}, 404, "AGENT_NOT_FOUND", None),
        ("no-such-agent", {}, 404, "AGENT_NOT_FOUND", None),
        ("echo/ws", {}, 404, "NOT_FOUND", None),
    ],
)
async def test_who_may_not_call_gets_no_connection(
    alice: Caller, slug: str, options: dict[str, object], status: int, reason: str, challenge: str | None
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with open_line(alice, slug, **options):
            pass
    response = refused.value.response
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert response.headers.get("www-authenticate") == challenge
    assert refusal_of_rpc(status, json.loads(response.body), None).reason == reason


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_request_without_an_upgrade_is_told_what_it_lacks(anonymous: Caller, method: str) -> None:
    """RFC 9110 §15.5.22."""
    response = anonymous.client.request(method, anonymous.web.agent_url("echo") + "/ws")
    assert (response.status_code, response.headers["upgrade"]) == (426, "websocket")
    assert response.headers["connection"] == "upgrade"
    assert response.headers["content-type"] == "application/a2a+json"
    if method != "HEAD":
        assert refusal_of_rest(426, response.json()).reason == "UPGRADE_REQUIRED"


@pytest.mark.parametrize(
    ("slug", "path", "reason"),
    [("no-such-agent", "/ws", "AGENT_NOT_FOUND"), ("hidden", "/ws", "AGENT_NOT_FOUND"), ("echo", "/ws/", "NOT_FOUND")],
)
def test_a_request_without_an_upgrade_where_nothing_is(anonymous: Caller, slug: str, path: str, reason: str) -> None:
    response = anonymous.client.get(anonymous.web.agent_url(slug) + path)
    assert refusal_of_rest(404, response.json()).reason == reason


async def test_an_open_agent_takes_anybody_and_an_upgrade_is_no_call(anonymous: Caller) -> None:
    async with open_line(anonymous, "echo") as line:
        assert state((await line.call(1, "SendMessage", saying()))["task"]) == "COMPLETED"


async def test_a_key_that_is_disabled_later_is_refused_from_then_on(alice: Caller, deployment: Deployment) -> None:
    async with open_line(alice, "order-agent") as line:
        assert (await line.call(1, "ListTasks"))["tasks"] == []
        deployment.query("UPDATE agents_apikey SET enabled = false WHERE owner = %s", [alice.owner])
        with pytest.raises(Refused) as refused:
            await until_refused(line)
    assert refused.value.reason == "UNAUTHENTICATED"


async def until_refused(line: Line) -> None:
    async with asyncio.timeout(30):
        while True:
            await line.call(2, "ListTasks")


async def test_binary_messages_end_the_connection(alice: Caller) -> None:
    async with open_line(alice, "echo") as line:
        with alice.nothing_stored():
            await line.connection.send(envelope("ListTasks").encode())
            await line.ask(2, "SendMessage", saying("too late"))
            with pytest.raises(ConnectionClosed) as closed:
                await line.connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1003


@pytest.mark.spec("13.4")
async def test_a_message_has_the_agents_size_limit(alice: Caller) -> None:
    def request(size: int) -> str:
        head = envelope("SendMessage", saying("x"))
        return head.replace('"x"', '"' + "x" * (size - len(head) + 1) + '"')

    async with open_line(alice, "small") as line:
        await line.connection.send(request(4096))
        assert state((await line.result("q1"))["task"]) == "COMPLETED"
        with alice.nothing_stored():
            await line.connection.send(request(4097))
            with pytest.raises(ConnectionClosed) as closed:
                await line.connection.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
    with alice.nothing_stored():
        async with open_line(alice, "small") as line:
            await line.connection.send(part for part in [request(4000)[:-1], " " * 97, "}"])
            with pytest.raises(ConnectionClosed) as closed:
                await line.connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


async def test_only_so_many_calls_are_open_at_a_time(alice: Caller) -> None:
    async with open_line(alice, "hold") as line:
        for number in range(CALLS_MAX):
            await line.ask(number, "SendStreamingMessage", saying("hold"))
        tasks = [(await line.result(number))["task"]["id"] for number in range(CALLS_MAX)]
        for number in range(CALLS_MAX):
            assert state(await line.result(number)) == "WORKING"
        with alice.nothing_stored(), pytest.raises(Refused) as refused:
            await line.call("more", "SendMessage", saying())
        assert (refused.value.code, refused.value.reason) == (-32603, "UNAVAILABLE")
        await asyncio.to_thread(alice.rest("hold").cancel, tasks[0])
        await line.rest(0)
        for number, task in enumerate(tasks[1:], 1):
            await line.call("cancel", "CancelTask", {"id": task})
            await line.rest(number)
        await line.nothing_more()


def resident(web: Web) -> int:
    """Memory of a web process, in bytes."""
    status = Path(f"/proc/{web.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


async def test_a_slow_reader_costs_no_memory_and_loses_nothing(alice: Caller, deployment: Deployment) -> None:
    """60 MB for a client that reads one event and then none: at some point more events take no more memory.

    The stream is in another process than the agent, which has to know all of its task. After the first 400 events the
    hub has as many as it keeps for all of its readers.
    """
    web = deployment.start_web()
    task = alice.rest("torrent").say()["id"]

    def has_come(seq: int) -> bool:
        [(last,)] = deployment.query("SELECT last_seq FROM tasks_app_task WHERE id = %s", [task])
        return bool(last >= seq)

    async with open_line(alice.before(web), "torrent", max_queue=1) as line:
        await line.ask(1, "SubscribeToTask", {"id": task})
        assert state(await line.result(1)) == "INPUT_REQUIRED"
        line.connection.transport.pause_reading()
        await asyncio.to_thread(alice.rest("torrent").start, "go", taskId=task)
        await eventually(lambda: has_come(400), "the first events")
        before = resident(web)
        await eventually(lambda: has_come(CHUNKS), "all of them")
        assert resident(web) - before < 18_000_000
        line.connection.transport.resume_reading()
        items = await line.rest(1)
    chunks = [item["artifactUpdate"]["artifact"]["parts"] for item in items if "artifactUpdate" in item]
    assert [part["text"][:5] for parts in chunks for part in parts] == [f"{n:05}" for n in range(CHUNKS)]
    assert state(items[-1]) == "COMPLETED"


async def test_a_flood_of_pings_that_nobody_answers_costs_no_memory(alice: Caller, web: Web) -> None:
    _, writer = await raw_connection(web)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    before = resident(web)
    pings = (b"\x89\xfd\0\0\0\0" + b"p" * 125) * 8000
    try:
        for _ in range(60):
            writer.write(pings)
            async with asyncio.timeout(0.5):
                await writer.drain()
    except (TimeoutError, ConnectionError):
        pass
    else:
        raise AssertionError("the host took 60 MB of pings")
    finally:
        writer.transport.abort()
    assert resident(web) - before < 20_000_000


async def test_the_host_answers_who_waits_before_it_stops(deployment: Deployment, alice: Caller) -> None:
    web = deployment.start_web()
    here = alice.before(web)
    async with open_line(here, "hold") as line, open_line(here, "echo") as idle:
        await line.ask("send", "SendMessage", saying("hold"))
        await line.ask("stream", "SendStreamingMessage", saying("hold"))
        await line.result("stream")
        await eventually(lambda: here.rest("hold").list()["totalSize"] == 2, "both tasks")
        stopping = asyncio.create_task(asyncio.to_thread(web.stop))
        assert state((await line.result("send"))["task"]) == "FAILED"
        assert state((await line.rest("stream"))[-1]) == "FAILED"
        for connection in (line.connection, idle.connection):
            with pytest.raises(ConnectionClosed) as closed:
                await connection.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
        await stopping
    assert web.process.ending == "SIGTERM"  # by itself, within its time


async def raw_connection(web: Web) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the agent `echo` after its upgrade, frame by frame."""
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port, limit=1024)
    head = (
        f"GET /agents/echo/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(b'0' * 16).decode()}\r\n\r\n"
    )
    writer.write(head.encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return reader, writer


async def test_a_client_that_answers_no_ping_is_cut_off(deployment: Deployment) -> None:
    web = deployment.start_web(KEEP_ALIVE_SECONDS="0.3")
    reader, writer = await raw_connection(web)
    heard = await asyncio.wait_for(reader.read(-1), 30)
    assert heard[:2] == b"\x89\x04"  # one ping
    assert heard[6:].startswith(b"\x88")
    assert heard[8:10] == (1011).to_bytes(2, "big")
    writer.close()


async def test_text_must_be_utf_8(alice: Caller) -> None:
    async with open_line(alice, "echo") as line:
        await line.connection.send(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', text=True)
        with pytest.raises(ConnectionClosed) as closed:
            await line.connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007


async def test_pings_of_the_client_are_answered(alice: Caller) -> None:
    async with open_line(alice, "echo") as line:
        pong = await line.connection.ping(b"hello")
        assert await asyncio.wait_for(pong, 30) >= 0


async def test_a_page_of_any_origin_may_connect(alice: Caller) -> None:
    """Keys are never sent by a browser on its own, so there is nothing to protect from other pages."""
    async with open_line(alice, "echo", origin="https://elsewhere.example") as line:
        await line.call(1, "ListTasks")


async def test_other_paths_take_no_connections(web: Web) -> None:
    for path in ("/", "/admin/", "/live/tasks", "/agents/echo", "/agents/a/b/ws", "/a2a/ws"):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"ws://127.0.0.1:{web.port}{path}", proxy=None):
                pass
        assert refused.value.response.status_code == 404
