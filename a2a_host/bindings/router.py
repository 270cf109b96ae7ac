"""Everything below /agents/<slug>: which binding a request is for. No HTML leaves these paths."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from a2a_host.bindings import cards, jsonrpc, rest
from a2a_host.bindings.errors import codes_of, error_headers, http_error
from a2a_host.bindings.http import A2A_JSON, respond, respond_preflight
from a2a_host.bindings.sse import EventStream
from protocol.errors import A2AError, InternalError, MethodNotAllowedError
from tasks_app.process import get_host

logger = logging.getLogger(__name__)


async def serve_agent(scope: Any, receive: Any, send: Any) -> None:
    """ASGI application of one agent's paths; the URL router names the agent and what follows it."""
    names = scope["url_route"]["kwargs"]
    slug, rest_path = names.get("slug", ""), names.get("rest", "/")
    if scope["method"] == "OPTIONS":
        await respond_preflight(send)
        return
    stream: EventStream | None = None
    try:
        stream = await _serve(slug, rest_path, scope, receive, send)
    except A2AError as error:
        await _refuse(scope, send, rest_path, error)
    except Exception:
        logger.exception("A request to /agents/%s failed", slug)
        await _refuse(scope, send, rest_path, InternalError())
    if stream is not None:
        del scope, names  # an idle stream is as small as it can be
        await stream(None, receive, send)


async def _serve(slug: str, rest_path: str, scope: Any, receive: Any, send: Any) -> EventStream | None:
    host = await get_host()
    entry = host.registry.get(slug)
    if rest_path == "/" and scope["method"] == "POST":
        return await jsonrpc.serve(host, entry, scope, receive, send)
    if rest_path == "/":
        raise MethodNotAllowedError(("POST", "OPTIONS"))
    if rest_path not in cards.PATHS:
        return await rest.serve(host, entry, scope, receive, send)
    await cards.serve_card(entry, scope, send)
    return None


async def _refuse(scope: Any, send: Any, rest_path: str, error: A2AError) -> None:
    """What fails before a binding has taken the request, in the form of the binding that the request is for."""
    if rest_path == "/" and scope["method"] == "POST":
        await jsonrpc.respond_error(send, error, jsonrpc.NO_ID)
    else:
        await respond_error(send, error)


async def respond_error(send: Any, error: A2AError) -> None:
    """A google.rpc.Status (§11.6)."""
    body = msgspec.json.encode(http_error(error))
    await respond(send, codes_of(error).http, body, A2A_JSON, error_headers(error))
