"""The card of an agent (§4.4.1, §8)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format

from agents.cards import CardCache, build_card, render_card
from agents.models import Agent
from agents.registration import register_agent
from agents.registry import AgentEntry, Registry
from protocol.card import missing_fields
from tests.agents.conftest import ECHO, make_agent

pytestmark = [pytest.mark.django_db, pytest.mark.spec("4.4.1")]
BASE = "https://api.e.test"


def entry_of(registry: Registry, slug: str = "echo") -> AgentEntry:
    registry.load_sync()
    return registry.get(slug)


def card_of(entry: AgentEntry) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(render_card(entry, BASE).body)
    return card


def test_open_agent(registry: Registry) -> None:
    make_agent(open=True)
    assert card_of(entry_of(registry)) == {
        "name": "Echo",
        "description": "Returns the text that it was sent as an artifact.",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": f"{BASE}/agents/echo", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": f"{BASE}/agents/echo", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {
                "id": "echo",
                "name": "Echo",
                "description": "Returns the text that it was sent as an artifact.",
                "tags": ["simulator", "echo"],
                "examples": ["hello"],
            }
        ],
    }


@pytest.mark.spec("4.5.1")
def test_closed_agent_takes_a_key_in_either_header(registry: Registry) -> None:
    make_agent()
    card = card_of(entry_of(registry))
    assert card["securitySchemes"] == {
        "bearer": {
            "httpAuthSecurityScheme": {"description": "An API key of this host as Bearer token.", "scheme": "bearer"}
        },
        "apiKey": {
            "apiKeySecurityScheme": {
                "description": "The same API key in a header of its own.",
                "location": "header",
                "name": "X-API-Key",
            }
        },
    }
    assert card["securityRequirements"] == [{"schemes": {"bearer": {}}}, {"schemes": {"apiKey": {}}}]


def full_agent() -> Agent:
    skill = {
        "skill_id": "order-status",
        "name": "订单查询",
        "description": "按订单号查询状态",
        "tags": ["order"],
        "examples": ["查询订单 123"],
        "input_modes": ["application/json"],
        "output_modes": ["image/png"],
    }
    values = {
        "name": "order-agent",
        "description": "处理订单查询与退款",
        "version": "2.1",
        "documentation_url": "https://e.test/docs",
        "icon_url": "https://e.test/icon.png",
        "provider_organization": "Acme",
        "provider_url": "https://e.test",
        "streaming": False,
    }
    return register_agent("order-agent", ECHO | values, [skill])[0]


def test_everything_else(registry: Registry) -> None:
    full_agent()
    card = card_of(entry_of(registry, "order-agent"))
    assert (card["name"], card["description"], card["version"]) == ("order-agent", "处理订单查询与退款", "2.1")
    assert (card["documentationUrl"], card["iconUrl"]) == ("https://e.test/docs", "https://e.test/icon.png")
    assert card["provider"] == {"organization": "Acme", "url": "https://e.test"}
    assert card["capabilities"]["streaming"] is False
    assert card["skills"][0]["inputModes"] == ["application/json"]
    assert card["skills"][0]["outputModes"] == ["image/png"]


@pytest.mark.spec("5.7")
def test_protobuf_reads_every_card_and_misses_nothing(registry: Registry) -> None:
    for slug in ("echo", "data", "steps", "hold", "ask", "auth", "direct", "boom", "reject"):
        make_agent(slug, executor=slug, open=slug == "data")
    full_agent()
    registry.load_sync()
    for entry in registry.entries():
        assert missing_fields(build_card(entry, BASE)) == []
        body = render_card(entry, BASE).body
        read = json_format.Parse(body, pb.AgentCard())
        assert json_format.MessageToDict(read) == json.loads(body)


@pytest.mark.spec("8.6")
def test_etag_and_last_modified(registry: Registry) -> None:
    agent = make_agent()
    card = render_card(entry_of(registry), BASE)
    assert card.etag.startswith('"')
    assert len(card.etag) == 34
    assert card.last_modified == agent.updated_at.strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert render_card(entry_of(Registry()), BASE) == card
    assert render_card(entry_of(registry), "http://other.test").etag != card.etag
    agent.name = "New"
    agent.save()
    assert render_card(entry_of(registry), BASE).etag != card.etag


def test_cache_follows_the_entry(registry: Registry) -> None:
    agent = make_agent()
    cache = CardCache()
    first = cache.get(entry_of(registry), BASE)
    assert cache.get(entry_of(registry), BASE) is first
    agent.name = "New"
    agent.save()
    second = cache.get(entry_of(registry), BASE)
    assert b'"name":"New"' in second.body
    assert cache.get(entry_of(registry), BASE) is second


def test_cache_is_bounded_and_drops_the_least_recently_used(registry: Registry) -> None:
    make_agent()
    entry = entry_of(registry)
    cache = CardCache(size=2)
    first, second = cache.get(entry, "http://1"), cache.get(entry, "http://2")
    assert cache.get(entry, "http://1") is first
    cache.get(entry, "http://3")
    assert cache.get(entry, "http://1") is first
    assert cache.get(entry, "http://2") is not second
    assert len(cache._cards) == 2
