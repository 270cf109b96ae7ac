"""Everything below /agents/<slug>: which binding a request is for. No HTML leaves these paths."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from a2a_host.bindings import cards, jsonrpc, rest
from a2a_host.bindings.errors import codes_of, error_headers, http_error
from a2a_host.bindings.http import A2A_JSON, respond, respond_preflight
from protocol.errors import A2AError, InternalError, MethodNotAllowedError
from tasks_app.host import get_host

logger = logging.getLogger(__name__)


async def serve_agent(scope: Any, receive: Any, send: Any) -> None:
    """ASGI application of one agent's paths; the URL router names the agent and what follows it."""
    names = scope["url_route"]["kwargs"]
    slug, rest_path = names.get("slug", ""), names.get("rest", "/")
    if scope["method"] == "OPTIONS":
        await respond_preflight(send)
        return
    try:
        host = await get_host()
        entry = host.registry.get(slug)
        if rest_path == "/" and scope["method"] == "POST":
            await jsonrpc.serve(host, entry, scope, receive, send)
        elif rest_path == "/":
            raise MethodNotAllowedError(("POST", "OPTIONS"))
        elif rest_path in cards.PATHS:
            await cards.serve_card(entry, scope, send)
        else:
            await rest.serve(host, entry, scope, receive, send)
    except A2AError as error:
        await respond_error(send, error)
    except Exception:
        logger.exception("A request to /agents/%s failed", slug)
        await respond_error(send, InternalError())


async def respond_error(send: Any, error: A2AError) -> None:
    """A google.rpc.Status (§11.6), for what fails before a binding has taken the request."""
    body = msgspec.json.encode(http_error(error))
    await respond(send, codes_of(error).http, body, A2A_JSON, error_headers(error))
