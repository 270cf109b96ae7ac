"""Extensions (§4.6): required ones are asked for, activated ones are echoed and reach the agent's code."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.peers import Peer, envelope, message
from tests.support.wire import Connection, request

GEO = "https://e.test/extensions/geo/v1"
CITE = "urn:e:cite:2"
pytestmark = [pytest.mark.usefixtures("agents"), pytest.mark.spec("4.6.1")]


@pytest.fixture(scope="module")
def agents(deployment: Deployment, web: Web) -> Iterator[None]:
    """`mapped` supports two extensions, `strict` requires one of them."""
    executor = ("--executor", "tests.cases.executors.Extended", "--open")
    deployment.run(
        ("agent", "register", "mapped", *executor, "--extension", GEO, "--extension", CITE),
        ("agent", "register", "strict", *executor, "--extension", CITE, "--required-extension", GEO),
        ("agent", "register", "mapped-worker", *executor, "--extension", GEO, "--execution", "worker"),
    )
    for slug in ("mapped", "strict", "mapped-worker"):
        card = f"{web.agent_url(slug)}/.well-known/agent-card.json"
        wait_until(lambda card=card: httpx.get(card, trust_env=False).status_code == 200, slug)  # type: ignore[misc]
    yield
    deployment.run(*(("agent", "disable", slug) for slug in ("mapped", "strict", "mapped-worker")))


def said(task: dict[str, list[dict[str, list[dict[str, str]]]]]) -> str:
    """What the agent's code knows of."""
    return task["artifacts"][0]["parts"][0]["text"]


def named(peer: Peer, *uris: str) -> Peer:
    return peer.with_headers(a2a_extensions=", ".join(uris))


@pytest.mark.case("E01")
@pytest.mark.spec("3.3.4")
@pytest.mark.parametrize("uris", [(), (CITE,), (GEO.upper(),), (f"{GEO}/",), ("https://e.test/extensions/geo/v2",)])
def test_a_send_without_a_required_extension_is_refused(alice: Caller, binding: str, uris: tuple[str, ...]) -> None:
    strict = named(alice.at("strict", binding), *uris)
    with alice.refused("EXTENSION_SUPPORT_REQUIRED") as refusal:
        strict.say()
    assert refusal.value.metadata == {"extensions": GEO}
    with alice.refused("EXTENSION_SUPPORT_REQUIRED"):
        strict.say_streaming("hi")


@pytest.mark.case("E01")
def test_a_send_with_it_is_served_and_other_operations_do_not_ask(alice: Caller, binding: str) -> None:
    strict = alice.at("strict", binding)
    task = named(strict, CITE, GEO).say()
    assert said(task) == f"{GEO} {CITE}"
    assert strict.get(task["id"])["id"] == task["id"]
    assert [listed["id"] for listed in strict.list()["tasks"]] == [task["id"]]
    with pytest.raises(Exception, match="TASK_NOT_CANCELABLE"):
        strict.cancel(task["id"])


@pytest.mark.case("E03")
@pytest.mark.spec("3.2.6")
def test_what_the_agent_does_not_declare_is_left_out(alice: Caller, binding: str) -> None:
    assert said(named(alice.at("mapped", binding), GEO, "unknown:1").say()) == GEO
    assert said(alice.at("mapped", binding).say()) == ""
    assert said(named(alice.at("echo", binding), GEO).say("plain")) == "plain"


@pytest.mark.case("E03")
@pytest.mark.usefixtures("worker")
def test_the_code_in_a_worker_knows_them_too(alice: Caller) -> None:
    assert said(named(alice.rest("mapped-worker"), GEO, CITE).say()) == GEO


@pytest.mark.case("E03")
@pytest.mark.spec("3.2.6")
def test_activated_ones_are_echoed(alice: Caller) -> None:
    extensions = {"a2a-extensions": f"{CITE},{GEO}, unknown:1"}
    rpc, rest = alice.jsonrpc("mapped"), alice.rest("mapped")
    replies = [
        rpc.post(envelope("SendMessage", {"message": message()}), **extensions),
        rest.ask("POST", "/message:send", {"message": message()}, **extensions),
        rest.ask("GET", "/tasks", **extensions),
    ]
    assert [reply.headers["a2a-extensions"] for reply in replies] == [f"{GEO}, {CITE}"] * 3
    plain = rpc.post(envelope("SendMessage", {"message": message()}))
    assert plain.json()["result"]["task"]
    unknown = rest.ask("GET", "/tasks", a2a_extensions="unknown:1")
    assert "a2a-extensions" not in {*plain.headers, *unknown.headers}


@pytest.mark.case("E03")
@pytest.mark.spec("3.2.6")
@pytest.mark.parametrize("over", ["jsonrpc", "rest"])
def test_activated_ones_are_echoed_on_streams(alice: Caller, over: str) -> None:
    content = {"message": message()}
    body = envelope("SendStreamingMessage", content) if over == "jsonrpc" else envelope_body(content)
    path = "/agents/mapped" if over == "jsonrpc" else "/agents/mapped/message:stream"
    lines = [f"{name}: {value}" for name, value in alice.headers.items()]
    lines += ["Content-Type: application/json", f"A2A-Extensions: {GEO},unknown:1"]
    with Connection(alice.web.port, request("POST", path, body.encode(), *lines)) as connection:
        assert connection.read_head() == 200
        assert connection.header("content-type") == "text/event-stream; charset=utf-8"
        assert connection.header("a2a-extensions") == GEO


def envelope_body(content: object) -> str:
    """What HTTP+JSON sends."""
    return json.dumps(content)


@pytest.mark.case("E04")
@pytest.mark.spec("3.2.6")
def test_lines_of_the_header_are_joined(alice: Caller) -> None:
    body = envelope("SendMessage", {"message": message()})
    headers = [*alice.headers.items(), ("a2a-extensions", GEO), ("A2A-Extensions", CITE)]
    response = alice.client.post(alice.web.agent_url("mapped"), content=body, headers=headers)
    assert said(response.json()["result"]["task"]) == f"{GEO} {CITE}"


@pytest.mark.case("E04")
def test_the_name_of_0_3_counts_in_0_3_only(alice: Caller) -> None:
    new = alice.jsonrpc("mapped").post(envelope("SendMessage", {"message": message()}), x_a2a_extensions=GEO)
    assert said(new.json()["result"]["task"]) == ""
    assert not {"a2a-extensions", "x-a2a-extensions"} & {*new.headers}
    parts = [{"kind": "text", "text": "hi"}]
    old_message = {"messageId": message()["messageId"], "role": "user", "kind": "message", "parts": parts}
    old = alice.jsonrpc("mapped").with_headers(a2a_version=None)
    for header in ("x-a2a-extensions", "a2a-extensions"):
        params = {"message": old_message | {"messageId": message()["messageId"]}, "configuration": {"blocking": True}}
        reply = old.post(envelope("message/send", params), **{header: GEO})
        assert said(reply.json()["result"]) == GEO
        assert reply.headers["x-a2a-extensions"] == GEO


@pytest.mark.spec("4.4.4")
def test_the_card_declares_them(anonymous: Caller) -> None:
    response = httpx.get(f"{anonymous.web.agent_url('strict')}/.well-known/agent-card.json", trust_env=False)
    assert response.json()["capabilities"]["extensions"] == [{"uri": CITE}, {"uri": GEO, "required": True}]
