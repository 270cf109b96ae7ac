"""Area card: the card of an agent, where it points, and how it is cached (§4.4.1, §8)."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import httpx
import pytest

from tests.cases.conftest import PUBLIC_URL
from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.peers import envelope, message
from tests.support.wire import Connection, request

CARD = "/agents/echo/.well-known/agent-card.json"


def get(caller: Caller, path: str, verb: str = "GET", **headers: str) -> httpx.Response:
    """Any request without a body; headers are named like `if_none_match`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return caller.client.request(verb, caller.web.url + path, headers=named)


def card_through(caller: Caller, *lines: str, host: str = "api.e.test", slug: str = "echo") -> dict[str, Any]:
    """The card as a proxy is given it."""
    path = f"/agents/{slug}/.well-known/agent-card.json"
    with Connection(caller.web.port, request("GET", path, b"", *lines, host=host)) as connection:
        assert connection.read_head() == 200
        card: dict[str, Any] = json.loads(connection.read_body())
        return card


OVER_HTTP = ("JSONRPC", "HTTP+JSON")


def urls(card: dict[str, Any]) -> set[str]:
    """Where the card says that the agent answers over HTTP."""
    return {one["url"] for one in card["supportedInterfaces"] if one["protocolBinding"] in OVER_HTTP}


@pytest.mark.case("D04")
@pytest.mark.spec("8.3.1")
@pytest.mark.parametrize(
    ("host", "lines", "expected"),
    [
        ("api.e.test", (), "http://api.e.test"),
        ("api.e.test", ("X-Forwarded-Proto: https",), "https://api.e.test"),
        ("api.e.test", ("X-Forwarded-Proto: HTTPS",), "https://api.e.test"),
        ("api.e.test", ("X-Forwarded-Proto: https, http",), "https://api.e.test"),
        ("api.e.test", ("X-Forwarded-Proto: https", "X-Forwarded-Host: pub.e.test"), "https://pub.e.test"),
        ("inner:8000", ("X-Forwarded-Host: pub.e.test:8443, inner",), "http://pub.e.test:8443"),
        ("api.e.test:8443", ("X-Forwarded-Proto: https",), "https://api.e.test:8443"),
        ("[::1]:8000", (), "http://[::1]:8000"),
        ("api.e.test", ("X-Forwarded-Proto: javascript",), "http://api.e.test"),
        ("api.e.test", ("X-Forwarded-Proto:",), "http://api.e.test"),
    ],
)
def test_a_card_names_the_address_that_callers_use(
    alice: Caller, host: str, lines: tuple[str, ...], expected: str
) -> None:
    for slug in ("echo", "order-agent"):
        assert urls(card_through(alice, *lines, host=host, slug=slug)) == {f"{expected}/agents/{slug}"}


@pytest.mark.case("D04")
@pytest.mark.spec("8.3.1")
@pytest.mark.parametrize(
    ("host", "lines"),
    [
        ("e.test/x", ()),
        ('e.test"><script>', ()),
        ("e.test@evil.test", ()),
        ("a b", ()),
        ("", ()),
        ("e.test", ("X-Forwarded-Host: e.test/x?",)),
        ("e.test", ('X-Forwarded-Host: e.test"}',)),
        ("e.test", ("X-Forwarded-Host: \xff",)),
    ],
)
def test_nothing_else_gets_into_a_card(alice: Caller, host: str, lines: tuple[str, ...]) -> None:
    assert urls(card_through(alice, *lines, host=host)) == {"http://127.0.0.1:8000/agents/echo"}


@pytest.mark.case("D04")
@pytest.mark.spec("8.3.1")
def test_a_public_url_and_an_untrusted_proxy(alice: Caller, second_web: Web, lonely_web: Web) -> None:
    lines = ("X-Forwarded-Proto: https", "X-Forwarded-Host: evil.test")
    assert urls(card_through(alice.before(second_web), *lines)) == {f"{PUBLIC_URL}/agents/echo"}
    assert urls(card_through(alice.before(lonely_web), *lines)) == {"http://api.e.test/agents/echo"}


@pytest.mark.case("D01")
@pytest.mark.spec("8.6.1")
@pytest.mark.parametrize("path", [CARD, "/agents/echo/.well-known/agent.json"])
def test_a_card_is_cached_by_its_etag(anonymous: Caller, path: str) -> None:
    first = get(anonymous, path)
    etag, modified = first.headers["etag"], first.headers["last-modified"]
    assert (first.status_code, first.headers["content-type"]) == (200, "application/json")
    assert first.headers["cache-control"] == "public, max-age=60"
    assert re.fullmatch(r'"[0-9a-f]{32}"', etag)
    for headers in (
        {"if_none_match": etag},
        {"if_none_match": f"W/{etag}"},
        {"if_none_match": f'"x", {etag}, "y"'},
        {"if_none_match": "*"},
        {"if_modified_since": modified},
        {"if_none_match": etag, "if_modified_since": "Thu, 01 Jan 1970 00:00:00 GMT"},
    ):
        again = get(anonymous, path, **headers)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert again.headers["cache-control"] == "public, max-age=60"
    for headers in (
        {"if_none_match": '"x"'},
        {"if_none_match": '"x"', "if_modified_since": modified},
        {"if_modified_since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"if_modified_since": "nonsense"},
    ):
        assert get(anonymous, path, **headers).content == first.content


@pytest.mark.case("D01")
@pytest.mark.spec("8.6.1")
def test_the_etag_is_that_of_the_content(anonymous: Caller, lonely_web: Web) -> None:
    """Another address, another tag; another process, the same one."""
    here = get(anonymous, CARD)
    there = get(anonymous, CARD, host="api.e.test")
    assert here.headers["etag"] != there.headers["etag"]
    assert get(anonymous.before(lonely_web), CARD, host="api.e.test").headers["etag"] == there.headers["etag"]
    assert "Host" in here.headers["vary"]


@pytest.mark.case("D03")
@pytest.mark.spec("8.6.1")
def test_head_is_get_without_the_body(alice: Caller) -> None:
    task = alice.rest("echo").say()["id"]
    paths = ("/tasks", f"/tasks/{task}", "/tasks/none", "/nope", "/extendedAgentCard")
    for path in (CARD, "/agents/nobody/x", *(f"/agents/echo{path}" for path in paths)):
        whole, head = [alice.client.request(v, alice.web.url + path, headers=alice.headers) for v in ("GET", "HEAD")]
        assert (head.status_code, head.content) == (whole.status_code, b"")
        for headers in (whole.headers, head.headers):
            del headers["date"]
        assert head.headers == whole.headers


@pytest.mark.case("D06")
@pytest.mark.spec("4.4.1")
@pytest.mark.parametrize("slug", ["echo", "quiet", "data", "order-agent", "steps-worker", "described"])
def test_a_card_has_all_that_is_required(anonymous: Caller, slug: str) -> None:
    card = get(anonymous, f"/agents/{slug}/.well-known/agent-card.json").json()
    for name in ("name", "description", "version"):
        assert isinstance(card[name], str)
        assert card[name]
    for name in ("defaultInputModes", "defaultOutputModes", "skills", "supportedInterfaces"):
        assert isinstance(card[name], list)
        assert card[name]
    for skill in card["skills"]:
        assert all(skill[name] for name in ("id", "name", "description", "tags"))
    assert {(i["protocolBinding"], i["protocolVersion"]) for i in card["supportedInterfaces"]} >= {
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
    }
    assert card["capabilities"] == {
        "streaming": slug != "quiet",
        "pushNotifications": slug != "order-agent",
        "extendedAgentCard": False,
    }


@pytest.mark.case("D06")
@pytest.mark.spec("4.5.1")
def test_a_card_says_how_to_authenticate(anonymous: Caller) -> None:
    closed = get(anonymous, "/agents/order-agent/.well-known/agent-card.json").json()
    assert closed["name"] == "order-agent"
    assert closed["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"] == "bearer"
    assert closed["securitySchemes"]["apiKey"]["apiKeySecurityScheme"]["name"] == "X-API-Key"
    assert closed["securityRequirements"] == [{"schemes": {"bearer": {}}}, {"schemes": {"apiKey": {}}}]
    assert "securitySchemes" not in get(anonymous, CARD).json()


@pytest.mark.case("D06")
@pytest.mark.spec("8.3.1")
def test_the_urls_of_a_card_work(alice: Caller) -> None:
    rpc, rest = (i["url"] for i in get(alice, CARD).json()["supportedInterfaces"][:2])
    content = envelope("SendMessage", {"message": message()})
    assert "result" in alice.client.post(rpc, content=content, headers=alice.headers).json()
    assert alice.client.get(f"{rest}/tasks", headers=alice.headers).json()["totalSize"] == 1


@pytest.mark.case("D12")
@pytest.mark.spec("8.2")
def test_each_agent_has_its_own_card(anonymous: Caller) -> None:
    for slug in ("echo", "data", "ask"):
        card = get(anonymous, f"/agents/{slug}/.well-known/agent-card.json").json()
        assert urls(card) == {f"{anonymous.web.url}/agents/{slug}"}
        assert card["name"] == slug.capitalize()
    for slug in ("nobody", "hidden"):
        response = get(anonymous, f"/agents/{slug}/.well-known/agent-card.json")
        assert (response.status_code, response.headers["content-type"]) == (404, "application/a2a+json")
        assert response.json()["error"]["details"][0]["reason"] == "AGENT_NOT_FOUND"


def is_changed(caller: Caller, path: str, etag: str) -> bool:
    return bool(get(caller, path).headers["etag"] != etag)


@pytest.mark.case("D12")
@pytest.mark.spec("8.2")
def test_a_changed_card_is_served_soon_with_another_etag(
    anonymous: Caller, deployment: Deployment, lonely_web: Web
) -> None:
    path = "/agents/replacing/.well-known/agent-card.json"
    callers = [anonymous, anonymous.before(lonely_web)]
    before = [get(caller, path).headers["etag"] for caller in callers]
    deployment.query("UPDATE agents_agent SET description = 'Changed.' WHERE slug = 'replacing'")
    for caller, etag in zip(callers, before, strict=True):
        wait_until(partial(is_changed, caller, path, etag), "the change", patience=2)
        assert get(caller, path).json()["description"] == "Changed."
