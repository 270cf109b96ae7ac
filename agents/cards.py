"""The agent card (§4.4.1, §8) of an entry as bytes that are ready to send."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from email.utils import format_datetime

from agents.access import API_KEY_HEADER
from agents.entries import AgentEntry, SkillEntry
from protocol.card import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    APIKeySecurityScheme,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from protocol.codec import encode

PROTOCOL_VERSION = "1.0"
BINDINGS = ("JSONRPC", "HTTP+JSON")
"""Bindings of every agent, the preferred one first. Both live at the agent's URL."""
PUSH_SERVED = False
"""Whether the host serves the push operations. A card never promises what the host does not do."""
CACHED_CARDS = 256
"""The base URL of a card comes from the request when no public URL is set, so callers choose it: keep few."""

BEARER = "bearer"
API_KEY = "apiKey"


@dataclass(frozen=True, slots=True)
class Card:
    """A card with what HTTP caching needs (§8.6): a strong ETag in its quotes, Last-Modified as an HTTP date."""

    body: bytes
    etag: str
    last_modified: str


class CardCache:
    """Cards by agent and base URL, the least recently used one dropped first. A changed entry makes a new card."""

    def __init__(self, size: int = CACHED_CARDS) -> None:
        self._size = size
        self._cards: OrderedDict[tuple[str, str], tuple[AgentEntry, Card]] = OrderedDict()

    def get(self, entry: AgentEntry, base_url: str) -> Card:
        """The card of an agent reached through `base_url`, such as `https://api.example.com` without a slash."""
        key = (entry.slug, base_url)
        held = self._cards.get(key)
        if held is not None and held[0] is entry:
            self._cards.move_to_end(key)
            return held[1]
        card = render_card(entry, base_url)
        self._cards[key] = (entry, card)
        self._cards.move_to_end(key)
        if len(self._cards) > self._size:
            self._cards.popitem(last=False)
        return card


def render_card(entry: AgentEntry, base_url: str) -> Card:
    """Build and print a card. The same content gives the same ETag in every process."""
    body = encode(build_card(entry, base_url))
    return Card(
        body=body,
        etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        last_modified=format_datetime(entry.updated_at, usegmt=True),
    )


def agent_url(slug: str, base_url: str) -> str:
    """Where an agent answers, in every binding over HTTP."""
    return f"{base_url}/agents/{slug}"


def build_card(entry: AgentEntry, base_url: str) -> AgentCard:
    """The 1.0 card of an agent."""
    url = agent_url(entry.slug, base_url)
    card = AgentCard(
        name=entry.name,
        description=entry.description,
        version=entry.version,
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=PROTOCOL_VERSION) for binding in BINDINGS
        ],
        capabilities=AgentCapabilities(
            streaming=entry.streaming,
            push_notifications=entry.push_notifications and PUSH_SERVED,
            extended_agent_card=False,
        ),
        default_input_modes=list(entry.default_input_modes),
        default_output_modes=list(entry.default_output_modes),
        skills=[_skill(skill) for skill in entry.skills],
        documentation_url=entry.documentation_url or None,
        icon_url=entry.icon_url or None,
    )
    if entry.provider_organization:
        card.provider = AgentProvider(organization=entry.provider_organization, url=entry.provider_url)
    if not entry.open:
        card.security_schemes = _security_schemes()
        # Alternatives: one of the list is enough (§4.4.1).
        card.security_requirements = [
            SecurityRequirement(schemes={name: StringList()}) for name in card.security_schemes
        ]
    return card


def _security_schemes() -> dict[str, SecurityScheme]:
    bearer = HTTPAuthSecurityScheme(description="An API key of this host as Bearer token.", scheme="bearer")
    header = APIKeySecurityScheme(
        description="The same API key in a header of its own.", location="header", name=API_KEY_HEADER
    )
    return {
        BEARER: SecurityScheme(http_auth_security_scheme=bearer),
        API_KEY: SecurityScheme(api_key_security_scheme=header),
    }


def _skill(skill: SkillEntry) -> AgentSkill:
    return AgentSkill(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        tags=list(skill.tags),
        examples=list(skill.examples),
        input_modes=list(skill.input_modes),
        output_modes=list(skill.output_modes),
    )
