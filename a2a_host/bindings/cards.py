"""The agent card at its well-known places (§8.2), with HTTP caching (§8.6)."""

from __future__ import annotations

import hashlib
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

import msgspec

from a2a_host.bindings.errors import codes_of, error_headers, http_error
from a2a_host.bindings.http import JSON, Headers, respond, respond_empty, respond_preflight
from agents.access import CHALLENGE
from agents.cards import CACHED_CARDS, Card, CardCache
from agents.interfaces import SHARED_VERSION
from agents.public_url import base_url, is_known
from agents.registry import AgentEntry
from protocol.errors import A2AError, MethodNotAllowedError, RouteNotFoundError, UnauthenticatedError
from tasks_app.operations import Call
from tasks_app.processes.process import get_host

PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
MAX_AGE_SECONDS = 60

_cards = CardCache()


async def serve_card(entry: AgentEntry, scope: Any, send: Any) -> None:
    """Answer GET and HEAD. Raises MethodNotAllowedError for other methods."""
    check_reading(scope["method"])
    asked = dict(scope["headers"])
    url = base_url(scope, asked)
    await _serve(_cards.get(entry, url, is_known(url)), asked, scope, send)


async def serve_shared_card(entry: AgentEntry, scope: Any, send: Any) -> None:
    """Answer GET and HEAD with the card below /a2a. Raises MethodNotAllowedError, and RouteNotFoundError for an agent
    that is not there in the one version with tenants."""
    check_reading(scope["method"])
    if SHARED_VERSION not in entry.versions:
        raise RouteNotFoundError(scope["path"])
    asked = dict(scope["headers"])
    url = base_url(scope, asked)
    await _serve(_cards.shared(entry, url, is_known(url)), asked, scope, send)


def extended_card(call: Call) -> bytes:
    """The card that this caller sees (§3.1.11), as 1.0 has it. Raises UnauthenticatedError for anonymous ones."""
    if not call.caller.authenticated:
        raise UnauthenticatedError(CHALLENGE)
    url = call.find_base_url()
    return _cards.extended(call.entry, url, call.caller, is_known(url)).body


async def serve_keys(scope: Any, receive: Any, send: Any) -> None:
    """GET and HEAD /.well-known/jwks.json: the keys that sign cards (§8.4.3), as a JWK Set (RFC 7517)."""
    if scope["method"] == "OPTIONS":
        await respond_preflight(send)
        return
    try:
        check_reading(scope["method"])
        body = (await get_host()).registry.key_set
    except A2AError as error:
        status, headers = codes_of(error).http, error_headers(error)
        await respond(send, status, msgspec.json.encode(http_error(error)), JSON, headers)
    else:
        await serve_document(body, scope, send)


async def serve_document(body: bytes, scope: Any, send: Any) -> None:
    """Answer GET and HEAD with JSON that may be kept as long as a card."""
    card = Card(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"', "")
    await _serve(card, dict(scope["headers"]), scope, send)


def check_reading(method: str) -> None:
    """Raises MethodNotAllowedError."""
    if method not in ("GET", "HEAD"):
        raise MethodNotAllowedError(("GET", "HEAD", "OPTIONS"))


async def _serve(card: Card, asked: dict[bytes, bytes], scope: Any, send: Any) -> None:
    if _is_current(card, asked):
        await respond_empty(send, 304, _caching(card))
    elif scope["method"] == "HEAD":
        size = str(len(card.body)).encode()
        await respond_empty(send, 200, [(b"content-type", JSON), (b"content-length", size), *_caching(card)])
    else:
        await respond(send, 200, card.body, JSON, _caching(card))


@lru_cache(maxsize=CACHED_CARDS)
def _caching(card: Card) -> Headers:
    modified = [(b"last-modified", card.last_modified.encode())] if card.last_modified else []
    return [
        (b"etag", card.etag.encode()),
        *modified,
        (b"cache-control", b"public, max-age=%d" % MAX_AGE_SECONDS),
        (b"vary", b"Host, X-Forwarded-Proto, X-Forwarded-Host"),
    ]


def _is_current(card: Card, headers: dict[bytes, bytes]) -> bool:
    """RFC 9110 §13.2.2: If-None-Match decides; If-Modified-Since counts only without it."""
    tags = headers.get(b"if-none-match")
    if tags is not None:
        known = [t.strip().removeprefix("W/") for t in tags.decode("latin-1").split(",")]
        return "*" in known or card.etag in known
    since = headers.get(b"if-modified-since")
    if since is None:
        return False
    try:
        return parsedate_to_datetime(card.last_modified) <= parsedate_to_datetime(since.decode("latin-1"))
    except (ValueError, TypeError):
        return False
