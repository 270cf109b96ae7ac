"""The agent card at its well-known places (§8.2), with HTTP caching (§8.6)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from a2a_host.bindings.http import JSON, Headers, respond, respond_empty
from a2a_host.bindings.public_url import base_url
from agents.cards import CACHED_CARDS, Card, CardCache
from agents.registry import AgentEntry
from protocol.errors import MethodNotAllowedError

PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
MAX_AGE_SECONDS = 60

_cards = CardCache()


async def serve_card(entry: AgentEntry, scope: Any, send: Any) -> None:
    """Answer GET and HEAD. Raises MethodNotAllowedError for other methods."""
    if scope["method"] not in ("GET", "HEAD"):
        raise MethodNotAllowedError(("GET", "HEAD", "OPTIONS"))
    asked = dict(scope["headers"])
    card = _cards.get(entry, base_url(scope, asked))
    if _is_current(card, asked):
        await respond_empty(send, 304, _caching(card))
    elif scope["method"] == "HEAD":
        size = str(len(card.body)).encode()
        await respond_empty(send, 200, [(b"content-type", JSON), (b"content-length", size), *_caching(card)])
    else:
        await respond(send, 200, card.body, JSON, _caching(card))


@lru_cache(maxsize=CACHED_CARDS)
def _caching(card: Card) -> Headers:
    return [
        (b"etag", card.etag.encode()),
        (b"last-modified", card.last_modified.encode()),
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
