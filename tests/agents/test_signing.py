"""Signed cards (§8.4), checked by the verifiers of the SDKs, and the life of the keys."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3.types import AgentCard as V03AgentCard
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from cryptography.fernet import Fernet
from django.core.exceptions import ValidationError
from django.db import connection
from jwt import PyJWK
from pytest_django import Settings

from agents.cards import render_card, render_shared_card
from agents.models import Agent, SigningKey
from agents.registration import register_agent
from agents.registry import AgentEntry, Registry
from agents.signing_keys import generate_signing_key, retire_signing_key, rotate_signing_keys
from tests.agents.conftest import ECHO, make_agent

pytestmark = [pytest.mark.django_db, pytest.mark.spec("8.4")]
BASE = "https://api.e.test"
JWKS = f"{BASE}/.well-known/jwks.json"
SKILL = {
    "skill_id": "order-status",
    "name": "订单查询",
    "description": "按订单号查询状态 \u2028 é",
    "tags": ["order"],
    "examples": ["查询订单 123"],
}


def signed_card(registry: Registry, groups: frozenset[str] | None = None, slug: str = "echo") -> dict[str, Any]:
    registry.load_sync()
    card: dict[str, Any] = json.loads(render_card(registry.get(slug), BASE, groups, signed=True).body)
    return card


def headers(card: dict[str, Any]) -> list[dict[str, str]]:
    """The protected headers of a card's signatures."""
    protected = [signature["protected"] for signature in card["signatures"]]
    return [json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4))) for text in protected]


def find_key(registry: Registry) -> Callable[[str | None, str | None], PyJWK]:
    """Keys as a client finds them: in the published set."""
    published = jwt.PyJWKSet.from_dict(json.loads(registry.key_set))

    def find(kid: str | None, jku: str | None) -> PyJWK:
        assert jku == JWKS
        found = [key for key in published.keys if key.key_id == kid]
        if not found:
            raise jwt.PyJWTError("unknown key")
        return found[0]

    return find


def verify(card: dict[str, Any], registry: Registry) -> None:
    """By the SDK of 1.0. Raises SignatureVerificationError."""
    verifier = create_signature_verifier(find_key(registry), ["ES256", "RS256"])
    verifier(parse_agent_card(json.loads(json.dumps(card))))


def verify_v03(card: dict[str, Any], registry: Registry) -> None:
    """As the SDK of 0.3 does (a2a.utils.helpers.canonicalize_agent_card of a2a-sdk 0.3.26)."""
    read = V03AgentCard.model_validate(card)
    kept = read.model_dump(exclude={"signatures"}, exclude_defaults=True, exclude_none=True, by_alias=True, mode="json")
    payload = json.dumps(without_empty(kept), separators=(",", ":"), sort_keys=True).encode()
    assert any(fits(signature, payload, registry) for signature in card["signatures"])


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: kept for k, v in value.items() if (kept := without_empty(v)) is not None} or None
    if isinstance(value, list):
        return [kept for v in value if (kept := without_empty(v)) is not None] or None
    return None if value == "" else value


def fits(signature: dict[str, str], payload: bytes, registry: Registry) -> bool:
    """Whether a signature is one of this payload, detached (RFC 7515 appendix F)."""
    jws = jwt.PyJWS()
    protected = signature["protected"]
    header = json.loads(urlsafe_b64decode(protected + "=" * (-len(protected) % 4)))
    key = find_key(registry)(header["kid"], header["jku"])
    encoded = jwt.utils.base64url_encode(payload).decode()
    try:
        jws.decode(f"{protected}.{encoded}.{signature['signature']}", key.key, algorithms=[header["alg"]])
    except jwt.InvalidSignatureError:
        return False
    return True


@pytest.mark.parametrize("open_to_all", [True, False])
@pytest.mark.parametrize("versions", Agent.Versions.values)
@pytest.mark.parametrize("algorithm", SigningKey.Algorithm.values)
def test_every_card_is_verified_by_the_sdks(
    registry: Registry, algorithm: str, versions: str, open_to_all: bool
) -> None:
    key = generate_signing_key(algorithm)
    values = {"versions": versions, "open": open_to_all, "name": "订单 agent", "extended_card": open_to_all}
    agent = register_agent("echo", ECHO | values, [SKILL, SKILL | {"skill_id": "more", "groups": ["staff"]}])[0]
    agent.extensions.create(uri="urn:x", params={"one": 1, "half": 0.5, "empty": "", "none": None, "list": []})
    card = signed_card(registry)
    assert {tuple(sorted(header.items())) for header in headers(card)} == {
        (("alg", algorithm), ("jku", JWKS), ("kid", key.kid), ("typ", "JOSE"))
    }
    verify(card, registry)
    if versions != "1.0":
        verify_v03(card, registry)


@pytest.mark.spec("3.1.11")
@pytest.mark.parametrize("versions", ["both", "1.0"])
def test_an_extended_card_is_signed_too(registry: Registry, versions: str) -> None:
    generate_signing_key()
    skills = [SKILL, SKILL | {"skill_id": "more", "groups": ["staff"]}]
    register_agent("echo", ECHO | {"versions": versions, "extended_card": True}, skills)
    card = signed_card(registry, frozenset({"staff"}))
    assert [skill["id"] for skill in card["skills"]] == ["order-status", "more"]
    verify(card, registry)


@pytest.mark.spec("8.4.1")
def test_the_card_at_the_shared_address_is_signed_too(registry: Registry) -> None:
    generate_signing_key()
    make_agent("echo")
    registry.load_sync()
    card = json.loads(render_shared_card(registry.get("echo"), BASE, signed=True).body)
    assert [interface["url"] for interface in card["supportedInterfaces"]] == [f"{BASE}/a2a"] * 2
    verify(card, registry)
    card["supportedInterfaces"][0]["tenant"] = "other"
    with pytest.raises(SignatureVerificationError):
        verify(card, registry)


def test_the_first_signature_is_over_the_card_as_it_is(registry: Registry) -> None:
    generate_signing_key()
    make_agent(versions="1.0", name="ł", description="d")
    card = signed_card(registry)
    rest = {name: value for name, value in card.items() if name != "signatures"}
    # Its keys are ASCII and its numbers none, so this is RFC 8785.
    payload = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    assert fits(card["signatures"][0], payload, registry)
    assert not fits(card["signatures"][0], payload + b" ", registry)


def test_a_changed_card_is_refused(registry: Registry) -> None:
    generate_signing_key()
    make_agent()
    card = signed_card(registry)
    verify(card, registry)
    card["supportedInterfaces"][0]["url"] = "https://evil.test"
    with pytest.raises(SignatureVerificationError):
        verify(card, registry)


@pytest.mark.parametrize("algorithm", SigningKey.Algorithm.values)
def test_every_process_prints_the_same_card(registry: Registry, algorithm: str) -> None:
    generate_signing_key(algorithm)
    make_agent()
    entries: list[AgentEntry] = []
    for one in (registry, Registry()):
        one.load_sync()
        entries.append(one.get("echo"))
    assert render_card(entries[0], BASE, signed=True) == render_card(entries[1], BASE, signed=True)


def test_no_signature_where_none_is_wanted(registry: Registry) -> None:
    make_agent()
    make_agent("unsigned", sign_card=False)
    assert "signatures" not in signed_card(registry)
    generate_signing_key()
    assert "signatures" in signed_card(registry)
    assert "signatures" not in signed_card(registry, slug="unsigned")
    assert b"signatures" not in render_card(registry.get("echo"), BASE).body


class TestRotation:
    def test_the_first_key_signs_at_once_and_the_next_one_waits(self, registry: Registry) -> None:
        first, second = generate_signing_key(), generate_signing_key("RS256")
        assert (first.state, second.state) == ("active", "next")
        with pytest.raises(ValidationError, match="There is a next key already"):
            generate_signing_key()
        assert SigningKey.objects.count() == 2
        make_agent()
        assert {header["kid"] for header in headers(signed_card(registry))} == {first.kid}
        published = json.loads(registry.key_set)["keys"]
        assert {key["kid"] for key in published} == {first.kid, second.kid}
        assert not any({"d", "p", "q"} & key.keys() for key in published)

    @pytest.mark.spec("8.6")
    def test_rotate(self, registry: Registry) -> None:
        first, second = generate_signing_key(), generate_signing_key()
        make_agent()
        before = signed_card(registry)
        old_entry = registry.get("echo")
        assert rotate_signing_keys() == second
        first.refresh_from_db()
        assert (first.state, first.private_key) == ("retired", "")
        after = signed_card(registry)
        assert {header["kid"] for header in headers(after)} == {second.kid}
        for card in (before, after):
            verify(card, registry)
        new_entry = registry.get("echo")
        assert new_entry.updated_at >= old_entry.updated_at
        assert render_card(new_entry, BASE, signed=True).etag != render_card(old_entry, BASE, signed=True).etag
        third = rotate_signing_keys()
        assert third.pk not in (first.pk, second.pk)
        assert [key.state for key in SigningKey.objects.order_by("id")] == ["retired", "retired", "active"]

    def test_nothing_to_rotate(self) -> None:
        with pytest.raises(ValidationError, match="There is no signing key yet"):
            rotate_signing_keys()
        assert not SigningKey.objects.exists()

    def test_retire(self, registry: Registry) -> None:
        first, second = generate_signing_key(), generate_signing_key()
        make_agent()
        retire_signing_key(first)
        assert {header["kid"] for header in headers(signed_card(registry))} == {second.kid}
        retire_signing_key(second)
        retire_signing_key(second)
        assert "signatures" not in signed_card(registry)
        assert len(json.loads(registry.key_set)["keys"]) == 2
        SigningKey.objects.all().delete()
        registry.load_sync()
        assert json.loads(registry.key_set) == {"keys": []}


def test_the_private_half_is_stored_encrypted() -> None:
    key = generate_signing_key()
    with connection.cursor() as cursor:
        cursor.execute("SELECT private_key, public_jwk::text FROM agents_signingkey")
        private, public = cursor.fetchone()
    assert private == key.private_key
    assert "PRIVATE" not in private
    assert '"d"' not in public


def test_a_key_that_cannot_be_read_leaves_cards_unsigned_and_is_heard_of(
    registry: Registry, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    key = generate_signing_key()
    make_agent()
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    assert "signatures" not in signed_card(registry)
    assert f"Cards are not signed, since the key {key.kid} cannot be read" in caplog.text
