"""The list of agents and the lines to call them."""

from __future__ import annotations

import json
import subprocess

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from protocol.states import TaskState
from tests.ui.support import Page, make_agent, make_task


def test_an_agent_with_all_that_is_needed_to_call_it(staff: Client, db: None, settings: Settings) -> None:
    settings.GRPC_PORT = 50051
    agent = make_agent("order-agent", name="订单助手", description="Answers.", version="2.1", open=False)
    for state in (TaskState.FAILED, TaskState.COMPLETED, TaskState.COMPLETED):
        make_task(agent, state=state)
    page = Page(staff.get("/catalog/"))
    assert page.text("agent-order-agent").startswith(
        "订单助手 order-agent 2.1 API key Answers. "
        f"Simulator {agent.get_execution_display()} streams webhooks 2 Completed 1 Failed Endpoint "
        "http://testserver/agents/order-agent Card "
        "http://testserver/agents/order-agent/.well-known/agent-card.json Bindings "
        "JSON-RPC 1.0, HTTP+JSON 1.0, gRPC 1.0, WebSocket 1.0, JSON-RPC 0.3, HTTP+JSON 0.3 "
        "JSON-RPC 1.0 http://testserver/agents/order-agent HTTP+JSON 1.0 http://testserver/agents/order-agent "
        "gRPC 1.0 tenant order-agent testserver:50051 "
        "WebSocket 1.0 ws://testserver/agents/order-agent/ws "
        "JSON-RPC 0.3 http://testserver/agents/order-agent HTTP+JSON 0.3 http://testserver/agents/order-agent Curl"
    )
    links = [a["href"] for a in page.find("a")]
    assert "/tasks/?agent=order-agent&state=completed" in links
    assert "/tasks/?agent=order-agent" in links
    assert f"/admin/agents/agent/{agent.pk}/change/" in links
    copied = [b["data-copy"] for b in page.find("button") if "data-copy" in b]
    assert copied[:2] == [
        "http://testserver/agents/order-agent",
        "http://testserver/agents/order-agent/.well-known/agent-card.json",
    ]
    assert copied[2:-1] == [
        *("http://testserver/agents/order-agent", "http://testserver/agents/order-agent"),
        *("testserver:50051", "ws://testserver/agents/order-agent/ws"),
        *("http://testserver/agents/order-agent", "http://testserver/agents/order-agent"),
    ]
    assert copied[-1] == page_curl(page, "order-agent")


def page_curl(page: Page, slug: str) -> str:
    """The curl line of an agent with its line breaks, which `Page.text` folds."""
    lines = [b["data-copy"] for b in page.find("button") if b.get("data-copy", "").startswith("curl ")]
    return next(line for line in lines if f"/agents/{slug}" in line.split("\n")[0])


def shell_words(line: str) -> list[str]:
    """The arguments that a shell passes to curl."""
    script = 'curl() { printf "%s\\0" "$@"; }\n' + line
    environment = {"A2A_KEY": "a2a_secret", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, check=True, text=True)
    return done.stdout.split("\0")[:-1]


def test_the_curl_line_means_what_it_says_to_a_shell(staff: Client, db: None, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://agents.example/a b"
    make_agent("open")
    make_agent("closed", open=False)
    page = Page(staff.get("/catalog/"))
    *words, body = shell_words(page_curl(page, "open"))
    assert words == [
        *("https://agents.example/a b/agents/open", "-H", "Content-Type: application/json"),
        *("-H", "A2A-Version: 1.0", "-d"),
    ]
    request = json.loads(body)
    assert request["params"]["message"].pop("messageId").isdecimal()
    assert request == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"role": "ROLE_USER", "parts": [{"text": "hello"}]}},
    }
    *words, body = shell_words(page_curl(page, "closed"))
    assert words[0] == "https://agents.example/a b/agents/closed"
    assert words[5:] == ["-H", "Authorization: Bearer a2a_secret", "-d"]


def test_the_curl_line_of_an_agent_that_is_served_in_0_3_only(staff: Client, db: None) -> None:
    make_agent("old", versions="0.3")
    page = Page(staff.get("/catalog/"))
    *words, body = shell_words(page_curl(page, "old"))
    assert words[4] == "A2A-Version: 0.3"
    request = json.loads(body)
    request["params"]["message"].pop("messageId")
    assert (request["method"], request["params"]["message"]) == (
        "message/send",
        {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "hello"}]},
    )


@pytest.mark.parametrize(
    ("peer", "address"), [("127.0.0.1", "https://pub.e.test:8443"), ("192.0.2.1", "http://testserver")]
)
def test_addresses_are_those_of_the_cards_behind_a_proxy(peer: str, address: str, staff: Client, db: None) -> None:
    make_agent("echo")
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "pub.e.test:8443, inner"}
    page = Page(staff.get("/catalog/", headers=forwarded, REMOTE_ADDR=peer))
    copied = [b["data-copy"] for b in page.find("button") if "data-copy" in b]
    assert copied[:2] == [f"{address}/agents/echo", f"{address}/agents/echo/.well-known/agent-card.json"]
    assert copied[-1].startswith(f"curl {address}/agents/echo ")
    empty_list = staff.get("/tasks/", headers=forwarded, REMOTE_ADDR=peer).content.decode()
    assert f"curl {address}/agents/echo " in empty_list


@pytest.mark.parametrize(("query", "slugs"), [("", ["a", "c", "b"]), ("ECH", ["a"]), ("second", ["c"]), ("%", [])])
def test_finding_agents(query: str, slugs: list[str], staff: Client, db: None) -> None:
    make_agent("a", name="Echo", description="first")
    make_agent("b", name="Bravo", description="third", enabled=False)
    make_agent("c", name="Charlie", description="Second")
    page = Page(staff.get("/catalog/", {"q": query}))
    assert [a["id"].removeprefix("agent-") for a in page.find("article")] == slugs


def test_a_disabled_agent_says_so(staff: Client, db: None) -> None:
    make_agent("b", enabled=False)
    assert "Disabled Open" in Page(staff.get("/catalog/")).text("agent-b")


def test_without_agents_there_is_a_way_to_get_one(staff: Client, db: None) -> None:
    page = Page(staff.get("/catalog/"))
    assert page.texts("empty") == ["No agents yet Register one in the admin; it is live within a second."]
    assert page.find("a", href="/admin/agents/agent/add/")
    assert Page(staff.get("/catalog/", {"q": "x"})).texts("empty") == ["No agent matches See all agents"]


def test_a_null_character_in_the_search(staff: Client, db: None) -> None:
    assert staff.get("/catalog/?q=%00").status_code == 200
