"""The agent card (§4.4.1, §8) of an entry as bytes that are ready to send."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import format_datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from agents.access import API_KEY_HEADER
from agents.card_forms import canonical_forms, read_as_v1
from agents.entries import AgentEntry, ExtensionEntry, SkillEntry
from agents.interfaces import interfaces, shared_interfaces
from agents.runtimes.base import Caller
from protocol.card import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentProvider,
    AgentSkill,
    APIKeySecurityScheme,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from protocol.codec import encode
from protocol.dialects.v03.card import print_both, print_v03

CACHED_CARDS = 256
"""The base URL of a card comes from the request when no public URL is set, so callers choose it: keep few."""
KEYS_PATH = "/.well-known/jwks.json"

BEARER = "bearer"
API_KEY = "apiKey"
EVERY_KEY = "*"
"""The group that every caller with a key is in."""

Json = dict[str, Any]
Groups = frozenset[str]
PUBLIC: Groups = frozenset()


@dataclass(frozen=True, slots=True)
class Card:
    """A card with what HTTP caching needs (§8.6): a strong ETag in its quotes, Last-Modified as an HTTP date."""

    body: bytes
    etag: str
    last_modified: str


class CardCache:
    """Cards by agent, address and readers, the least recently used one dropped first. A changed entry makes a new one.

    `base_url` is such as `https://api.example.com`, without a slash. `signed`: whether that address is the host's own,
    so that its key may vouch for it.
    """

    def __init__(self, size: int = CACHED_CARDS) -> None:
        self._size = size
        self._cards: OrderedDict[tuple[str, str, Groups | str], tuple[AgentEntry, Card]] = OrderedDict()

    def get(self, entry: AgentEntry, base_url: str, signed: bool = False) -> Card:
        """The public card of an agent, for clients of the versions that it is served in."""
        return self._get(entry, base_url, "public", lambda: render_card(entry, base_url, None, signed))

    def shared(self, entry: AgentEntry, base_url: str, signed: bool = False) -> Card:
        """The card of an agent at the address that all agents share, which is there in 1.0 only."""
        return self._get(entry, base_url, "shared", lambda: render_shared_card(entry, base_url, signed))

    def extended(self, entry: AgentEntry, base_url: str, caller: Caller, signed: bool = False) -> Card:
        """The card that a caller with a key sees (§3.1.11), as 1.0 has it."""
        groups = entry.groups & (caller.groups | {EVERY_KEY})
        return self._get(entry, base_url, groups, lambda: render_card(entry, base_url, groups, signed))

    def _get(self, entry: AgentEntry, base_url: str, kind: Groups | str, render: Callable[[], Card]) -> Card:
        key = (entry.slug, base_url, kind)
        held = self._cards.get(key)
        if held is not None and held[0] is entry:
            self._cards.move_to_end(key)
            return held[1]
        card = render()
        self._cards[key] = (entry, card)
        self._cards.move_to_end(key)
        if len(self._cards) > self._size:
            self._cards.popitem(last=False)
        return card


def render_card(entry: AgentEntry, base_url: str, groups: Groups | None = None, signed: bool = False) -> Card:
    """Build and print a card, the extended one for readers in `groups`, the public one for None.

    The same content gives the same ETag in every process.
    """
    card = build_card(entry, base_url, groups)
    # An extended card is the result of an operation, which the dialect of the call translates.
    printed = _print_v1(card) if groups is not None else print_card(card, entry.versions)
    if signed and entry.signer is not None:
        printed["signatures"] = _signatures(card, printed, entry, base_url)
    return _ready(printed, entry)


def render_shared_card(entry: AgentEntry, base_url: str, signed: bool = False) -> Card:
    """Build and print the 1.0 card of an agent with the interfaces that all agents share, and its tenant there."""
    card = build_card(entry, base_url)
    card.supported_interfaces = shared_interfaces(entry, base_url)
    printed = _print_v1(card)
    if signed and entry.signer is not None:
        printed["signatures"] = entry.signer.sign(canonical_forms(printed, printed, None), base_url + KEYS_PATH)
    return _ready(printed, entry)


def _ready(printed: Json, entry: AgentEntry) -> Card:
    body = msgspec.json.encode(printed)
    return Card(
        body=body,
        etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        last_modified=format_datetime(entry.updated_at, usegmt=True),
    )


def print_card(card: AgentCard, versions: tuple[str, ...]) -> Json:
    """The JSON of a card for clients of these versions; one that all of them read if they are several."""
    if "0.3" not in versions:
        return _print_v1(card)
    return print_both(card) if "1.0" in versions else print_v03(card)


def _print_v1(card: AgentCard) -> Json:
    printed: Json = msgspec.json.decode(encode(card))
    return printed


def _signatures(card: AgentCard, printed: Json, entry: AgentEntry, base_url: str) -> list[dict[str, str]]:
    assert entry.signer is not None
    as_v1, as_v03 = _print_v1(card), print_v03(card) if "0.3" in entry.versions else None
    if as_v03 is not None and "1.0" not in entry.versions:
        as_v1 = read_as_v1(as_v1, as_v03)
    forms = canonical_forms(printed, as_v1, as_v03)
    return entry.signer.sign(forms, base_url + KEYS_PATH)


def build_card(entry: AgentEntry, base_url: str, groups: Groups | None = None) -> AgentCard:
    """The card of an agent in all of its versions: the public one, or what readers in `groups` see besides."""
    shown = [note.text for note in entry.notes if groups is not None and (not note.groups or groups & {*note.groups})]
    card = AgentCard(
        name=entry.name,
        description="\n\n".join([entry.description, *shown]),
        version=entry.version,
        supported_interfaces=interfaces(entry, base_url),
        capabilities=AgentCapabilities(
            streaming=entry.streaming,
            push_notifications=entry.push_notifications,
            extensions=[_extension(extension) for extension in entry.extensions],
            extended_agent_card=entry.extended_card,
        ),
        default_input_modes=list(entry.default_input_modes),
        default_output_modes=list(entry.default_output_modes),
        skills=[_skill(skill) for skill in _shown_skills(entry.skills, groups or PUBLIC)],
        documentation_url=entry.documentation_url or None,
        icon_url=entry.icon_url or None,
    )
    if entry.provider_organization:
        card.provider = AgentProvider(organization=entry.provider_organization, url=entry.provider_url)
    _secure(card, entry)
    return card


def _secure(card: AgentCard, entry: AgentEntry) -> None:
    if entry.open and not entry.extended_card:
        return
    card.security_schemes = _security_schemes()
    if not entry.open:
        # Alternatives: one of the list is enough (§4.4.1).
        card.security_requirements = [
            SecurityRequirement(schemes={name: StringList()}) for name in card.security_schemes
        ]


def _security_schemes() -> dict[str, SecurityScheme]:
    bearer = HTTPAuthSecurityScheme(description="An API key of this host as Bearer token.", scheme="bearer")
    header = APIKeySecurityScheme(
        description="The same API key in a header of its own.", location="header", name=API_KEY_HEADER
    )
    return {
        BEARER: SecurityScheme(http_auth_security_scheme=bearer),
        API_KEY: SecurityScheme(api_key_security_scheme=header),
    }


def _extension(extension: ExtensionEntry) -> AgentExtension:
    return AgentExtension(
        uri=extension.uri,
        description=extension.description,
        required=extension.required,
        params=Raw(extension.params.encode()) if extension.params else UNSET,
    )


def _shown_skills(skills: Iterable[SkillEntry], groups: Groups) -> list[SkillEntry]:
    return [skill for skill in skills if not skill.groups or groups & {*skill.groups}]


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
