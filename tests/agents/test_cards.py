"""The card of an agent (§4.4.1, §8)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from a2a.compat.v0_3.types import AgentCard as V03AgentCard
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from pytest_django import Settings

from agents.cards import CardCache, build_card, render_card
from agents.interfaces import JSONRPC_WEBSOCKET
from agents.models import Agent
from agents.registration import register_agent
from agents.registry import AgentEntry, Registry
from agents.runtimes.base import Caller
from protocol.card import missing_fields
from tests.agents.conftest import ECHO, make_agent

pytestmark = [pytest.mark.django_db, pytest.mark.spec("4.4.1")]
BASE = "https://api.e.test"


@pytest.fixture(autouse=True)
def no_grpc(settings: Settings) -> None:
    settings.GRPC_PORT = 0


def entry_of(registry: Registry, slug: str = "echo") -> AgentEntry:
    registry.load_sync()
    return registry.get(slug)


def card_of(entry: AgentEntry) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(render_card(entry, BASE).body)
    return card


def test_open_agent(registry: Registry) -> None:
    make_agent(open=True, versions="1.0")
    assert card_of(entry_of(registry)) == {
        "name": "Echo",
        "description": "Returns the text that it was sent as an artifact.",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": f"{BASE}/agents/echo", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": f"{BASE}/agents/echo", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "wss://api.e.test/agents/echo/ws", "protocolBinding": JSONRPC_WEBSOCKET, "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": False},
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
    make_agent(versions="1.0")
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
    for slug in ("echo", "data", "steps", "hold", "ask", "auth", "direct", "boom", "reject", "wait", "relay"):
        make_agent(slug, executor=slug, open=slug == "data")
    full_agent()
    Agent.objects.update(versions="1.0")
    registry.load_sync()
    for entry in registry.entries():
        assert missing_fields(build_card(entry, BASE)) == []
        body = render_card(entry, BASE).body
        read = json_format.Parse(body, pb.AgentCard())
        assert json_format.MessageToDict(read) == json.loads(body)


def places(card: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """URL, binding, version and tenant of each interface."""
    return [
        (one["url"], one["protocolBinding"], one["protocolVersion"], one.get("tenant", ""))
        for one in card["supportedInterfaces"]
    ]


URL = f"{BASE}/agents/echo"
V1_0 = [(URL, "JSONRPC", "1.0", ""), (URL, "HTTP+JSON", "1.0", "")]
WEBSOCKET = ("wss://api.e.test/agents/echo/ws", JSONRPC_WEBSOCKET, "1.0", "")
V0_3 = [(URL, "JSONRPC", "0.3", ""), (URL, "HTTP+JSON", "0.3", "")]


@pytest.mark.spec("4.4.6")
class TestVersions:
    """The card is in the versions that the agent is served in, and names their interfaces."""

    def test_both_in_one_card(self, registry: Registry) -> None:
        make_agent()
        card = card_of(entry_of(registry))
        assert places(card) == [*V1_0, WEBSOCKET, *V0_3]
        assert (card["url"], card["protocolVersion"], card["preferredTransport"]) == (URL, "0.3.0", "JSONRPC")
        assert card["additionalInterfaces"] == [
            {"url": URL, "transport": "JSONRPC"},
            {"url": URL, "transport": "HTTP+JSON"},
        ]

    def test_the_new_one_alone(self, registry: Registry) -> None:
        make_agent(versions="1.0")
        card = card_of(entry_of(registry))
        assert places(card) == [*V1_0, WEBSOCKET]
        assert not {"url", "protocolVersion", "preferredTransport", "additionalInterfaces"} & card.keys()

    def test_the_old_one_alone(self, registry: Registry) -> None:
        make_agent(versions="0.3")
        card = card_of(entry_of(registry))
        assert "supportedInterfaces" not in card
        assert (card["url"], card["protocolVersion"], card["preferredTransport"]) == (URL, "0.3.0", "JSONRPC")
        assert card["supportsAuthenticatedExtendedCard"] is False
        assert card["security"] == [{"bearer": []}, {"apiKey": []}]
        V03AgentCard.model_validate(card)

    @pytest.mark.spec("10.1")
    def test_grpc_is_named_where_it_is_served(self, registry: Registry, settings: Settings) -> None:
        make_agent(versions="1.0")
        settings.GRPC_PORT = 50051
        entry = entry_of(registry)
        assert places(card_of(entry)) == [*V1_0, ("api.e.test:50051", "GRPC", "1.0", "echo"), WEBSOCKET]
        ipv6 = json.loads(render_card(entry, "http://[::1]:8000").body)
        assert places(ipv6)[-2] == ("[::1]:50051", "GRPC", "1.0", "echo")
        settings.PUBLIC_URL = BASE
        assert places(card_of(entry)) == [*V1_0, WEBSOCKET]
        settings.GRPC_PUBLIC_URL = "grpc.e.test:443"
        assert places(card_of(entry)) == [*V1_0, ("grpc.e.test:443", "GRPC", "1.0", "echo"), WEBSOCKET]


@pytest.mark.spec("4.4.4")
def test_extensions_are_on_the_card(registry: Registry) -> None:
    agent = make_agent(versions="1.0")
    agent.extensions.create(uri="urn:geo:1", description="Where", required=True, params={"unit": "m", "n": [1, 2.5]})
    agent.extensions.create(uri="urn:plain", position=1)
    assert card_of(entry_of(registry))["capabilities"]["extensions"] == [
        {"uri": "urn:geo:1", "description": "Where", "required": True, "params": {"unit": "m", "n": [1, 2.5]}},
        {"uri": "urn:plain"},
    ]


def skill(skill_id: str, *groups: str) -> dict[str, Any]:
    return {"skill_id": skill_id, "name": skill_id, "description": "d", "tags": ["t"], "groups": list(groups)}


def seen(entry: AgentEntry, *groups: str) -> tuple[list[str], str]:
    """Skills and description on the extended card of a caller in these groups."""
    card = json.loads(CardCache().extended(entry, BASE, Caller("x", True, frozenset(groups))).body)
    return [skill["id"] for skill in card["skills"]], card["description"]


@pytest.mark.spec("3.1.11")
class TestExtendedCard:
    """The public card keeps to itself what only some callers see."""

    @pytest.fixture
    def entry(self, registry: Registry) -> AgentEntry:
        skills = [skill("open"), skill("staff", "staff"), skill("known", "*"), skill("both", "staff", "ops")]
        agent = register_agent("echo", ECHO | {"description": "D", "extended_card": True}, skills)[0]
        agent.notes.create(text="For every key.")
        agent.notes.create(text="For staff.", groups=["staff"], position=1)
        return entry_of(registry)

    def test_each_caller_sees_what_its_groups_may(self, entry: AgentEntry) -> None:
        assert seen(entry) == (["open", "known"], "D\n\nFor every key.")
        assert seen(entry, "ops") == (["open", "known", "both"], "D\n\nFor every key.")
        assert seen(entry, "staff", "other") == (
            ["open", "staff", "known", "both"],
            "D\n\nFor every key.\n\nFor staff.",
        )

    def test_the_public_card_shows_none_of_it(self, entry: AgentEntry) -> None:
        card = card_of(entry)
        assert ([one["id"] for one in card["skills"]], card["description"]) == (["open"], "D")
        assert card["capabilities"]["extendedAgentCard"] is True
        assert card["supportsAuthenticatedExtendedCard"] is True

    def test_callers_who_see_the_same_share_a_card(self, entry: AgentEntry) -> None:
        cache = CardCache()
        first = cache.extended(entry, BASE, Caller("a", True, frozenset({"staff", "x"})))
        assert cache.extended(entry, BASE, Caller("b", True, frozenset({"staff", "y"}))) is first
        assert cache.extended(entry, BASE, Caller("c", True)) is not first
        assert cache.get(entry, BASE) not in (first, cache.extended(entry, BASE, Caller("c", True)))

    @pytest.mark.spec("13.3")
    def test_an_open_agent_with_one_says_how_to_authenticate(self, registry: Registry) -> None:
        make_agent("open", open=True, extended_card=True, versions="1.0")
        card = card_of(entry_of(registry, "open"))
        assert sorted(card["securitySchemes"]) == ["apiKey", "bearer"]
        assert "securityRequirements" not in card


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
