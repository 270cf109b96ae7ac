"""HTTP itself: methods, paths, bodies and headers as nobody should send them (§13.4, RFC 9110, RFC 9112)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cases.reading import at_work, state
from tests.cases.test_card import get
from tests.cases.test_proxy import PATHS
from tests.support.callers import Caller
from tests.support.peers import envelope, message
from tests.support.wire import Connection, request

VERBS = ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"]
STRANGE_PATHS = [
    *("/agents/%00", "/agents/echo/%00", "/agents/echo/tasks/%FF%FE", "/agents/echo/%2e%2e/admin", "/agents/%2F"),
    *("/agents/echo%2Ftasks", "/agents/echo;x=1/tasks", "/agents/echo/tasks/?x", "/agents/echo?x=%zz&%FF=%00"),
    *("/agents/..%2fadmin", "/agents/echo/static/x", "/agents/echo/" + "x" * 3000, "/agents/echo/" + "a/" * 500),
]


@pytest.mark.case("R11")
@pytest.mark.spec("11.6")
@pytest.mark.parametrize("path", [*PATHS, *STRANGE_PATHS], ids=lambda path: path[:40])
def test_nothing_below_agents_is_html(alice: Caller, path: str) -> None:
    for verb in VERBS:
        head = request(verb, path, b"", f"Authorization: Bearer {alice.key}", "Accept: text/html")
        with alice.nothing_stored(), Connection(alice.web.port, head) as connection:
            status = connection.read_head()
            assert connection.header("content-type") in ("application/json", "application/a2a+json")
            document = json.loads(connection.read_body())
        assert status in (200, 400, 404, 405)
        assert connection.header("location") is None
        if status == 200 and "jsonrpc" in document:
            assert document["error"]["code"] == -32700
        else:
            assert ("error" in document) == (status != 200)


@pytest.mark.spec("9.1")
@pytest.mark.parametrize(
    "path", ["/agents/echo", "/agents/echo/", "/agents/echo?x=1", "/agents/ech%6F", "/agents/echo/?"]
)
def test_the_endpoint_of_json_rpc_has_no_redirect(alice: Caller, path: str) -> None:
    content = envelope("ListTasks", {})
    response = alice.client.post(alice.web.url + path, content=content, headers=alice.headers)
    assert (response.status_code, response.json()["result"]["totalSize"]) == (200, 0)


def call_of(binding: str) -> tuple[str, bytes]:
    """Path and body of a SendMessage with a text of 3,000 letters."""
    params = {"message": message("x" * 3000)}
    if binding == "jsonrpc":
        return "/agents/echo", envelope("SendMessage", params).encode()
    return "/agents/echo/message:send", json.dumps(params).encode()


@pytest.mark.spec("9.1")
@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
def test_a_body_in_chunks(alice: Caller, binding: str, size: int) -> None:
    path, body = call_of(binding)
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", f"Authorization: Bearer {alice.key}"]
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    with Connection(alice.web.port, "\r\n".join(lines).encode() + b"\r\n\r\n" + chunks) as connection:
        assert connection.read_head() == 200
        assert b"TASK_STATE_COMPLETED" in connection.read_body()


@pytest.mark.spec("9.1")
def test_a_caller_who_waits_to_continue(alice: Caller, binding: str) -> None:
    path, body = call_of(binding)
    whole = request("POST", path, body, "Expect: 100-continue", f"Authorization: Bearer {alice.key}")
    with Connection(alice.web.port, whole.removesuffix(body)) as connection:
        assert connection.read_head() == 100
        connection.send(body)
        assert connection.read_head() == 200
        assert b"TASK_STATE_COMPLETED" in connection.read_body()


@pytest.mark.spec("9.1")
def test_a_body_byte_by_byte_and_two_requests_in_one_write(alice: Caller, binding: str) -> None:
    path, body = call_of(binding)
    key = f"Authorization: Bearer {alice.key}"
    whole = request("POST", path, body, key)
    with Connection(alice.web.port) as connection:
        for at in range(300):
            connection.send(whole[at : at + 1])
        connection.send(whole[300:] + request("GET", "/agents/echo/tasks", b"", key))
        assert connection.read_head() == 200
        assert b"TASK_STATE_COMPLETED" in connection.read_body()
        assert connection.read_head() == 200
        assert json.loads(connection.read_body())["totalSize"] == 1


@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("moment", ["inside the head", "before the body", "inside the body", "after a chunk"])
def test_a_caller_who_leaves_early_leaves_nothing(alice: Caller, binding: str, moment: str) -> None:
    path, body = call_of(binding)
    whole = request("POST", path, body, f"Authorization: Bearer {alice.key}")
    sent = {
        "inside the head": whole[:30],
        "before the body": whole.removesuffix(body),
        "inside the body": whole[:-10],
        "after a chunk": whole.removesuffix(body).replace(
            f"Content-Length: {len(body)}".encode(), b"Transfer-Encoding: chunked"
        )
        + b"%x\r\n%b\r\n" % (len(body), body),
    }[moment]
    with alice.nothing_stored():
        for _ in range(5):
            Connection(alice.web.port, sent).close()
        assert alice.at("echo", binding).list()["totalSize"] == 0


@pytest.mark.spec("13.4")
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (("A2A-Extensions: a,b", "A2A-Extensions: c"), 200),
        (("Content-Type: application/json", "Content-Type: application/json"), 200),
        (("Accept: a/b", "Accept: */*"), 200),
        (("A2A-Version: 1.0\r\n continued",), 400),
        (("X-Api-Key: a\x00b",), 400),
        (("Transfer-Encoding: chunked",), 400),
        (("Content-Length: 5",), 400),
        (("Content-Length: -1",), 400),
        (("Bad Header Name: x",), 400),
        ((": x",), 400),
    ],
)
def test_doubled_and_broken_headers(alice: Caller, lines: tuple[str, ...], status: int) -> None:
    with Connection(alice.web.port, request("GET", "/agents/echo/tasks", b"", *lines)) as connection:
        assert connection.read_head() == status
        assert b"<html" not in connection.read_body()


@pytest.mark.spec("13.4")
@pytest.mark.parametrize("bad", ["a%0d%0aSet-Cookie:%20x=1", "%0D%0A%0D%0A<html>", "a%00b", "é%0a"])
def test_no_header_can_be_smuggled_into_a_reply(alice: Caller, bad: str) -> None:
    path = f"/agents/{bad}/tasks/{bad}?A2A-Version={bad}&pageToken={bad}"
    lines = [f"Origin: https://{bad}", f"A2A-Extensions: {bad}", f"Last-Event-ID: {bad}", f"Accept: {bad}"]
    known = {"date", "content-type", "content-length", "vary", "connection"}
    for target in (path, path.replace(f"/agents/{bad}", "/agents/echo")):
        raw = [text.encode().decode("latin-1") for text in (target, *lines)]
        with Connection(alice.web.port, request("GET", raw[0], b"", *raw[1:])) as connection:
            assert connection.read_head() in (400, 404)
            names = {name for name, _ in connection.headers if not name.startswith("access-control-")}
            assert names <= known


@pytest.mark.spec("13.4")
def test_bytes_beyond_ascii_in_a_query_and_a_path(alice: Caller) -> None:
    """The server refuses them itself, before the host is asked."""
    for target in ("/agents/echo/tasks?contextId=\xff", "/agents/echo/tasks/\xff", "/agents/\xff", "/agents/echo?\xff"):
        with Connection(alice.web.port, request("GET", target)) as connection:
            assert connection.read_head() == 400
            assert b"<" not in connection.read_body()
    page = alice.rest("echo").call("GET", "/tasks?contextId=%FF%FE")
    assert page["totalSize"] == 0


@pytest.mark.spec("3.2.2")
def test_fifty_callers_at_once(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    with ThreadPoolExecutor(50) as pool:
        tasks = list(pool.map(lambda number: echo.say(f"text {number}"), range(100)))
    assert [task["artifacts"][0]["parts"][0]["text"] for task in tasks] == [f"text {number}" for number in range(100)]
    assert echo.list()["totalSize"] == 100


@pytest.mark.spec("3.5.2")
def test_a_stream_leaves_room_for_others_on_the_same_agent(alice: Caller, binding: str) -> None:
    hold = alice.at("hold", binding)
    task = at_work(hold)["id"]
    streams = [hold.subscribe(task) for _ in range(60)]
    assert state(hold.get(task)) == "WORKING"
    hold.cancel(task)
    for stream in streams:
        with stream:
            assert [event.state for event in stream.rest()] == ["WORKING", "CANCELED"]


@pytest.mark.spec("8.6.1")
def test_health(anonymous: Caller) -> None:
    response = get(anonymous, "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
