"""Area rest, paths: encoded, unknown and not allowed ones (§11.3)."""

from __future__ import annotations

import pytest

from tests.cases.reading import at_work, state
from tests.support.callers import Caller
from tests.support.peers import message
from tests.support.refusals import refusal_of_rest


@pytest.mark.case("R05")
@pytest.mark.spec("11.3.2")
@pytest.mark.parametrize("colon", [":", "%3A", "%3a"])
def test_a_colon_may_be_encoded(alice: Caller, colon: str) -> None:
    hold = alice.rest("hold")
    task = at_work(hold)["id"]
    with hold.open("POST", f"/tasks/{task}{colon}subscribe") as stream:
        assert stream.next().state == "WORKING"
    assert state(hold.call("POST", f"/tasks/{task}{colon}cancel")) == "CANCELED"
    echo = alice.rest("echo")
    assert state(echo.call("POST", f"/message{colon}send", {"message": message()})["task"]) == "COMPLETED"
    with echo.open("POST", f"/message{colon}stream", {"message": message()}) as stream:
        assert stream.rest()[-1].state == "COMPLETED"


@pytest.mark.case("R05")
@pytest.mark.spec("11.3.2")
def test_any_character_of_a_path_may_be_encoded(alice: Caller) -> None:
    echo = alice.rest("echo")
    task = echo.say()
    encoded = "".join(f"%{ord(c):02X}" for c in task["id"])
    assert echo.call("GET", f"/tasks/{encoded}") == task
    assert echo.call("GET", f"/t%61sks/{task['id']}") == task


@pytest.mark.case("R07")
@pytest.mark.case("R08")
@pytest.mark.spec("11.3.2")
@pytest.mark.parametrize(("verb", "body"), [("POST", None), ("POST", {}), ("GET", None), ("POST", {"id": "other"})])
def test_subscribe_takes_post_and_get(alice: Caller, verb: str, body: dict[str, str] | None) -> None:
    hold = alice.rest("hold")
    task = at_work(hold)["id"]
    with hold.open(verb, f"/tasks/{task}:subscribe", body) as stream:
        assert stream.next().response["task"]["id"] == task
        hold.cancel(task)
        assert stream.rest()[-1].state == "CANCELED"
    with alice.refused("TASK_NOT_FOUND") as refusal:
        hold.open(verb, "/tasks/none:subscribe", body)
    assert refusal.value.metadata == {"taskId": "none"}


@pytest.mark.case("R09")
@pytest.mark.spec("11.6")
@pytest.mark.parametrize(
    ("segment", "id"),
    [
        ("a%2Fb", "a/b"),
        ("%E4%BD%A0", "你"),
        ("a%20b", "a b"),
        ("a+b", "a+b"),
        ("a%0Ab%0D", "a\nb\r"),
        ("%2E%2E", ".."),
        ("%2F", "/"),
        ("a%3Fb%23c", "a?b#c"),
        ("%25", "%"),
        ("%2500", "%00"),
        ("a:b", "a:b"),
        ("x:unknown", "x:unknown"),
        (":cancel", ":cancel"),
        ("%FF", "\ufffd"),
        ("%", "%"),
        ("%zz", "%zz"),
        ("<b>&quot;", "<b>&quot;"),
    ],
)
def test_ids_of_a_path_are_decoded_once(alice: Caller, segment: str, id: str) -> None:
    with alice.refused("TASK_NOT_FOUND") as refusal:
        alice.rest("echo").call("GET", f"/tasks/{segment}")
    assert refusal.value.metadata == {"taskId": id}


@pytest.mark.case("R11")
@pytest.mark.spec("11.6")
@pytest.mark.parametrize(
    ("verb", "path", "status", "allow"),
    [
        ("POST", "/message:send/", 404, None),
        ("GET", "/tasks/", 404, None),
        ("GET", "/nope", 404, None),
        ("GET", "/message:nope", 404, None),
        ("POST", "/message", 404, None),
        ("GET", "//tasks", 404, None),
        ("GET", "/tasks/a/b/c/d", 404, None),
        ("GET", "/tasks/a/pushNotificationConfigs/", 404, None),
        ("POST", "/v1/message:send", 404, None),
        ("GET", "/card", 404, None),
        ("PUT", "/tasks/x", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/tasks/x", 405, "GET, HEAD, OPTIONS"),
        ("DELETE", "/tasks/x", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/tasks", 405, "GET, HEAD, OPTIONS"),
        ("GET", "/message:send", 405, "POST, OPTIONS"),
        ("PUT", "/message:send", 405, "POST, OPTIONS"),
        ("GET", "/message:stream", 405, "POST, OPTIONS"),
        ("GET", "/tasks/x:cancel", 405, "POST, OPTIONS"),
        ("DELETE", "/tasks/x:subscribe", 405, "GET, POST, OPTIONS"),
        ("HEAD", "/message:send", 405, "POST, OPTIONS"),
        ("HEAD", "/tasks/x:subscribe", 405, "GET, POST, OPTIONS"),
        ("HEAD", "", 405, "POST, OPTIONS"),
        ("PATCH", "/tasks/x:cancel", 405, "POST, OPTIONS"),
        ("TRACE", "/tasks", 405, "GET, HEAD, OPTIONS"),
        ("PUT", "/tasks/x/pushNotificationConfigs", 405, "GET, HEAD, POST, OPTIONS"),
        ("POST", "/tasks/x/pushNotificationConfigs/y", 405, "GET, HEAD, DELETE, OPTIONS"),
        ("POST", "/extendedAgentCard", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/.well-known/agent-card.json", 405, "GET, HEAD, OPTIONS"),
        ("DELETE", "/.well-known/agent.json", 405, "GET, HEAD, OPTIONS"),
        ("GET", "/.well-known/agent-card.json/", 404, None),
        ("GET", "", 405, "POST, OPTIONS"),
        ("GET", "/", 405, "POST, OPTIONS"),
        ("PUT", "", 405, "POST, OPTIONS"),
        ("DELETE", "/", 405, "POST, OPTIONS"),
    ],
)
def test_what_is_not_there_or_not_allowed(alice: Caller, verb: str, path: str, status: int, allow: str | None) -> None:
    with alice.nothing_stored():
        response = alice.rest("echo").ask(verb, path, {"message": message()} if verb != "GET" else None)
    assert response.status_code == status
    if verb != "HEAD":
        assert refusal_of_rest(status, response.json()).status == status
    assert response.headers["content-type"] == "application/a2a+json"
    assert response.headers.get("allow") == allow
    assert "location" not in response.headers


@pytest.mark.spec("11.3.2")
@pytest.mark.parametrize("path", ["%2Ftasks", "%2ftasks/x", "%2Fv1%2Ftasks/x", "%2Fmessage:send"])
def test_an_encoded_slash_ends_no_slug(alice: Caller, path: str) -> None:
    """What comes before it is the agent to some readers of a path and not to others."""
    response = alice.client.get(f"{alice.web.agent_url('echo')}{path}", headers=alice.headers)
    assert refusal_of_rest(response.status_code, response.json()).reason == "NOT_FOUND"
