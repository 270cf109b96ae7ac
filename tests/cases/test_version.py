"""Area version: A2A-Version in header and query (§3.6). This host serves 1.0 and 0.3."""

from __future__ import annotations

import pytest

from tests.support.callers import Caller
from tests.support.peers import envelope, message
from tests.support.refusals import Refused, refusal_of_rest, refusal_of_rpc
from tests.support.wire import Connection, request

SERVED = ["1.0", "1.0.0", "1.0.7", " 1.0 ", "\t1.0", "1.0.12345"]
OLD = ["0.3", "0.3.0", "0.3.7", " 0.3 "]
NOT_SERVED = [
    "99.0",
    "1.1",
    "1.10",
    "2.0",
    "2",
    "1",
    "0",
    "0.2",
    "0.2.6",
    "0.4",
    "0.30",
    "00.3",
    "v1.0",
    "1.0-beta",
    "1,0",
    "01.0",
    "1.00",
]
NOT_SERVED += ["1.0.x", "1.0.", "1.0.0.0", "1.0, 1.1", "latest", "null", "1.0.-1", "x" * 1000]


@pytest.mark.case("V01")
@pytest.mark.case("V09")
@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("version", NOT_SERVED, ids=lambda version: version[:20])
def test_other_versions_are_refused_by_every_operation(alice: Caller, binding: str, version: str) -> None:
    echo = alice.at("echo", binding).with_headers(a2a_version=version)
    for call in (
        lambda: echo.get("none"),
        lambda: echo.list(),
        lambda: echo.list(pageSize=0),
        lambda: echo.cancel("none"),
        lambda: echo.subscribe("none"),
        lambda: echo.say("hi"),
        lambda: echo.say_streaming("hi"),
    ):
        with alice.refused("VERSION_NOT_SUPPORTED") as refusal:
            call()
        assert refusal.value.metadata == {"version": version[:20], "supportedVersions": "1.0, 0.3"}


@pytest.mark.case("V03")
@pytest.mark.case("V04")
@pytest.mark.spec("3.6")
@pytest.mark.parametrize("version", SERVED)
def test_a_patch_and_white_space_do_not_count(alice: Caller, json_binding: str, version: str) -> None:
    path, body = {
        "jsonrpc": ("/agents/echo", envelope("GetTask", {"id": "none"}).encode()),
        "rest": ("/agents/echo/tasks/none", b""),
    }[json_binding]
    verb = "POST" if body else "GET"
    with Connection(alice.web.port, request(verb, path, body, f"A2A-Version:{version}")) as connection:
        connection.read_head()
        assert b'"reason":"TASK_NOT_FOUND"' in connection.read_body()


@pytest.mark.case("V04")
@pytest.mark.spec("3.6")
@pytest.mark.parametrize("version", OLD)
def test_0_3_is_served_in_any_patch(alice: Caller, version: str) -> None:
    body = envelope("tasks/get", {"id": "none"}).encode()
    for lines in (f"A2A-Version:{version}",), ():
        for verb, path, sent in ("POST", "/agents/echo", body), ("GET", "/agents/echo/v1/tasks/none", b""):
            with Connection(alice.web.port, request(verb, path, sent, *lines)) as connection:
                connection.read_head()
                assert b'"reason":"TASK_NOT_FOUND"' in connection.read_body()


@pytest.mark.spec("3.6.2")
def test_a_version_that_is_named_wins_over_that_of_the_method(alice: Caller) -> None:
    """Each version has methods and paths of its own, which the other one does not have."""
    rpc, rest = alice.jsonrpc("echo"), alice.rest("echo")
    for version, method in (
        ("0.3", "GetTask"),
        ("0.3.0", "SendMessage"),
        ("1.0", "tasks/get"),
        ("1.0", "message/send"),
    ):
        with alice.refused("METHOD_NOT_FOUND"):
            rpc.with_headers(a2a_version=version).call(method, {"id": "none"})
    for path in ("/tasks/none", "/tasks"):
        with alice.refused("NOT_FOUND"):
            rest.with_headers(a2a_version="0.3").call("GET", path)
    with alice.refused("AGENT_NOT_FOUND"):  # To 1.0, `v1` is a tenant.
        rest.call("GET", "/v1/tasks/none")


@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("served", ["1.0", "0.3"])
def test_an_agent_that_serves_one_version(alice: Caller, served: str) -> None:
    slug = f"only-{served.replace('.', '-')}"
    other = "0.3" if served == "1.0" else "1.0"
    rpc, rest = alice.jsonrpc(slug), alice.rest(slug)
    methods = {"1.0": ("GetTask", "/tasks/none"), "0.3": ("tasks/get", "/v1/tasks/none")}
    for named in (None, "", served, other):
        method, path = methods[other]
        reasons = ("VERSION_NOT_SUPPORTED", "METHOD_NOT_FOUND") if named == served else ("VERSION_NOT_SUPPORTED",)
        with alice.nothing_stored(), pytest.raises(Refused) as refusal:
            rpc.with_headers(a2a_version=named).call(method, {"id": "none"})
        assert refusal.value.reason in reasons
        if refusal.value.reason == "VERSION_NOT_SUPPORTED":
            assert refusal.value.metadata == {"version": other, "supportedVersions": served}
        response = rest.with_headers(a2a_version=named).ask("GET", path)
        assert response.status_code in (400, 404)
    method, path = methods[served]
    for named in (None, "", served):
        with alice.refused("TASK_NOT_FOUND"):
            rpc.with_headers(a2a_version=named).call(method, {"id": "none"})
        response = rest.with_headers(a2a_version=named).ask("GET", path)
        assert (response.status_code, b'"TASK_NOT_FOUND"' in response.content) == (404, True)


@pytest.mark.case("V07")
@pytest.mark.spec("3.6.1")
@pytest.mark.parametrize("name", ["A2A-Version", "a2a-version"])
def test_the_version_may_be_in_the_query(alice: Caller, name: str) -> None:
    rest = alice.rest("echo").with_headers(a2a_version=None)
    rpc = alice.jsonrpc("echo").with_headers(a2a_version=None)
    for version in ("1.0", "0.2", "1.1"):
        reason = "TASK_NOT_FOUND" if version == "1.0" else "VERSION_NOT_SUPPORTED"
        response = rest.ask("GET", "/tasks/none", query={name: version})
        assert refusal_of_rest(response.status_code, response.json()).reason == reason
        url = f"{rpc.base}{rpc.path}?{name}={version}"
        response = alice.client.post(url, content=envelope("GetTask", {"id": "none"}), headers=rpc.headers)
        assert refusal_of_rpc(response.status_code, response.json()).reason == reason


@pytest.mark.case("V07")
@pytest.mark.spec("3.6.1")
def test_the_header_wins_over_the_query(alice: Caller) -> None:
    for header, query, reason in [
        ("1.0", "99.0", "TASK_NOT_FOUND"),
        ("99.0", "1.0", "VERSION_NOT_SUPPORTED"),
    ]:
        response = alice.rest("echo").ask("GET", "/tasks/none", query={"A2A-Version": query}, a2a_version=header)
        assert refusal_of_rest(response.status_code, response.json()).reason == reason


@pytest.mark.spec("3.6.2")
def test_without_a_version_the_name_of_the_operation_decides(alice: Caller, binding: str) -> None:
    """SendMessage and /message:send exist in 1.0 only."""
    echo = alice.at("echo", binding)
    for peer in (echo.with_headers(a2a_version=None), echo.with_headers(a2a_version="")):
        task = peer.say("hi")
        assert peer.get(task["id"]) == task
        assert peer.list()["tasks"][0]["id"] == task["id"]
        with peer.say_streaming("hi") as stream:
            assert stream.rest()[-1].state == "COMPLETED"


@pytest.mark.spec("3.6.2")
def test_the_same_version_twice_is_one_and_two_are_none(alice: Caller) -> None:
    for first, second, expected in [("1.0", "1.0", 404), ("1.0", "0.3", 400), ("0.3", "1.0", 400)]:
        lines = (f"A2A-Version: {first}", f"a2a-version: {second}")
        with Connection(alice.web.port, request("GET", "/agents/echo/tasks/none", b"", *lines)) as connection:
            assert connection.read_head() == expected


@pytest.mark.case("V01")
@pytest.mark.spec("3.6.2")
def test_who_may_not_call_is_told_so_first(alice: Caller, anonymous: Caller, binding: str) -> None:
    peer = anonymous.at("order-agent", binding).with_headers(a2a_version="99.0")
    with anonymous.refused("UNAUTHENTICATED"):
        peer.send({"message": message()})
