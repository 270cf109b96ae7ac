"""Area proxy: streams that nobody holds back, and pages of other origins (§3.5.2, §14.2)."""

from __future__ import annotations

import re

import pytest

from tests.cases.test_card import CARD, get
from tests.support.callers import Caller

ORIGIN = {"origin": "https://ui.test"}


@pytest.mark.case("S07")
@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("encoding", ["gzip", "gzip, deflate, br, zstd", "*", "identity;q=0, *;q=1"])
def test_a_stream_is_neither_held_back_nor_packed(alice: Caller, json_binding: str, encoding: str) -> None:
    steps = alice.at("steps", json_binding).with_headers(accept_encoding=encoding)
    with steps.say_streaming("steps 2 50") as stream:
        first = stream.next()
        assert first.state in ("SUBMITTED", "WORKING")
        assert stream.header("cache-control") == "no-cache, no-transform"
        assert stream.header("x-accel-buffering") == "no"
        assert stream.header("content-length") is None
        assert stream.header("content-encoding") is None
        assert stream.header("transfer-encoding") == "chunked"
        assert stream.header("access-control-allow-origin") == "*"
        assert stream.rest()[-1].state == "COMPLETED"


@pytest.mark.spec("3.5.2")
def test_no_reply_is_packed(alice: Caller, binding: str) -> None:
    peer = alice.at("echo", binding).with_headers(accept_encoding="gzip, br")
    assert peer.say("x" * 100_000)["artifacts"][0]["parts"] == [{"text": "x" * 100_000}]
    assert "content-encoding" not in get(alice, CARD, accept_encoding="gzip").headers


PATHS = [
    *("/agents/echo", "/agents/echo/", CARD, "/agents/echo/.well-known/agent.json", "/agents/echo/message:send"),
    *("/agents/echo/message:stream", "/agents/echo/tasks", "/agents/echo/tasks/x", "/agents/echo/tasks/x:cancel"),
    *("/agents/echo/tasks/x%3Asubscribe", "/agents/echo/tasks/x/pushNotificationConfigs", "/agents/echo/nope"),
    *("/agents/echo/extendedAgentCard", "/agents/nobody", "/agents/nobody/tasks", "/agents/order-agent"),
    *("/agents", "/agents/", "/agents//tasks", "/agents/echo/a%0Ab"),
]


@pytest.mark.case("D13")
@pytest.mark.case("D14")
@pytest.mark.spec("14.2")
@pytest.mark.parametrize("path", PATHS)
def test_a_preflight_is_allowed_everywhere(alice: Caller, path: str) -> None:
    asked = "content-type,authorization,a2a-version,a2a-extensions,x-a2a-extensions,last-event-id,x-api-key"
    for method in ("POST", "GET", "DELETE"):
        wish = {"access_control_request_method": method, "access_control_request_headers": asked}
        response = get(alice, path, "OPTIONS", **ORIGIN, **wish)
        assert (response.status_code, response.content) == (204, b"")
        assert response.headers["access-control-allow-origin"] == "*"
        assert method in re.split(r",\s*", response.headers["access-control-allow-methods"])
        allowed = set(re.split(r",\s*", response.headers["access-control-allow-headers"].lower()))
        assert set(asked.split(",")) <= allowed


@pytest.mark.case("D13")
@pytest.mark.case("D14")
@pytest.mark.spec("14.2")
@pytest.mark.parametrize(
    ("verb", "path", "status", "headers"),
    [
        ("GET", CARD, 200, {}),
        ("GET", CARD, 304, {"if_none_match": "*"}),
        ("POST", CARD, 405, {}),
        ("GET", "/agents/echo/tasks", 200, {}),
        ("GET", "/agents/echo/tasks/none", 404, {}),
        ("GET", "/agents/nobody/tasks", 404, {}),
        ("POST", "/agents/nobody", 404, {}),
        ("GET", "/agents/echo", 405, {}),
        ("GET", "/agents/order-agent/tasks", 401, {}),
        ("POST", "/agents/order-agent", 401, {}),
        ("GET", "/agents/echo/tasks", 401, {"authorization": "Bearer wrong"}),
        ("GET", "/agents/echo/tasks", 400, {"a2a_version": "99.0"}),
        ("POST", "/agents/echo", 415, {"content_type": "text/plain"}),
        ("POST", "/agents/echo/message:send", 415, {"content_type": "text/plain"}),
        ("POST", "/agents/echo/message:send", 400, {}),
        ("PUT", "/agents/echo/tasks", 405, {}),
        ("GET", "/agents", 404, {}),
        ("GET", "/agents/", 404, {}),
    ],
)
def test_every_reply_may_be_read_by_a_page(
    anonymous: Caller, verb: str, path: str, status: int, headers: dict[str, str]
) -> None:
    content = b"x" if status == 415 else b""
    named = {name.replace("_", "-"): value for name, value in (ORIGIN | headers).items()}
    response = anonymous.client.request(verb, anonymous.web.url + path, headers=named, content=content)
    assert response.status_code == status
    assert response.headers["access-control-allow-origin"] == "*"
    exposed = set(re.split(r",\s*", response.headers["access-control-expose-headers"].lower()))
    assert {"a2a-extensions", "www-authenticate", "etag"} <= exposed
    assert "access-control-allow-credentials" not in response.headers
