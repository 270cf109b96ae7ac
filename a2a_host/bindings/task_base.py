"""/a2a-tasks/<slug>: the base URL of an agent for clients of the task REST dialect, where nothing else answers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import msgspec

from a2a_host.bindings import cards, rest
from a2a_host.bindings.http import JSON
from a2a_host.bindings.rest.routes import split_path
from a2a_host.bindings.router import guard, respond_error
from a2a_host.bindings.sse import EventStream
from a2a_host.bindings.task_rest.routes import find_route
from agents.cards import BEARER, render_card
from agents.public_url import base_url
from agents.registry import AgentEntry
from protocol.errors import A2AError, RouteNotFoundError
from tasks_app.processes.process import get_host


def serve_task_base(scope: Any, receive: Any, send: Any) -> Awaitable[None]:
    """ASGI application of the base and what is below it."""
    return guard(_serve, False, scope, receive, send)


async def _serve(scope: Any, receive: Any, send: Any) -> EventStream | None:
    try:
        return await _answer(scope, receive, send)
    except A2AError as error:
        await respond_error(send, error, JSON)
        return None


async def _answer(scope: Any, receive: Any, send: Any) -> EventStream | None:
    host = await get_host()
    names = scope["url_route"]["kwargs"]
    entry = host.registry.get(names.get("slug", ""))
    if names.get("rest") in cards.PATHS:
        await _serve_card(entry, scope, send)
        return None
    route = find_route(split_path(scope["raw_path"], base=2))
    if route is None:
        raise RouteNotFoundError(scope["path"])
    return await rest.serve(host, entry, scope, receive, send, route)


async def _serve_card(entry: AgentEntry, scope: Any, send: Any) -> None:
    """The agent's card with the address and the authentication where clients of the dialect look for them."""
    cards.check_reading(scope["method"])
    base = base_url(scope, dict(scope["headers"]))
    card: dict[str, Any] = msgspec.json.decode(render_card(entry, base).body)
    card["url"] = f"{base}/a2a-tasks/{entry.slug}"
    if not entry.open:
        card["authentication"] = {"schemes": [BEARER]}
    await cards.serve_document(msgspec.json.encode(card), scope, send)
