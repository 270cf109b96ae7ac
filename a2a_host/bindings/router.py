"""Everything below /agents/<slug>: which binding a request is for. No HTML leaves these paths."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from a2a_host.bindings import cards, jsonrpc, rest
from a2a_host.bindings.errors import codes_of, error_headers, http_error
from a2a_host.bindings.http import JSON, answer_type, respond, respond_preflight
from a2a_host.bindings.rest.v03.errors import http_error_v03
from a2a_host.bindings.rest.v03.routes import is_v03, route_of_v03
from a2a_host.bindings.sse import EventStream
from a2a_host.bindings.task_rest.routes import route_beside_1_0
from protocol.errors import A2AError, InternalError, MethodNotAllowedError, UpgradeRequiredError
from tasks_app.processes.process import get_host

logger = logging.getLogger(__name__)


JSONRPC_PATHS = ("/", "/a2a/v1", "/a2a/v1/")
"""Where an agent's URL answers JSON-RPC; clients that were told a base URL only post to the last one."""
WEBSOCKET_PATH = "/ws"
"""Where an agent's URL takes WebSocket connections, which do not come this way."""

Serve = Callable[[Any, Any, Any], Awaitable[EventStream | None]]


def serve_agent(scope: Any, receive: Any, send: Any) -> Awaitable[None]:
    """ASGI application of one agent's paths; the URL router names the agent and what follows it."""
    rest_path = scope["url_route"]["kwargs"].get("rest", "/")
    return guard(_serve, rest_path in JSONRPC_PATHS, scope, receive, send)


async def guard(serve: Serve, is_jsonrpc: bool, scope: Any, receive: Any, send: Any) -> None:
    """Serve one request, with its errors in the form of the binding that it is for, and then send its stream."""
    if scope["method"] == "OPTIONS":
        await respond_preflight(send)
        return
    stream: EventStream | None = None
    try:
        stream = await serve(scope, receive, send)
    except A2AError as error:
        await _refuse(scope, send, is_jsonrpc, error)
    except Exception:
        logger.exception("A request to %s failed", scope["path"][:200])
        await _refuse(scope, send, is_jsonrpc, InternalError())
    if stream is not None:
        del scope  # an idle stream is as small as it can be
        await stream(None, receive, send)


async def _serve(scope: Any, receive: Any, send: Any) -> EventStream | None:
    names = scope["url_route"]["kwargs"]
    rest_path = names.get("rest", "/")
    host = await get_host()
    entry = host.registry.get(names.get("slug", ""))
    if rest_path in JSONRPC_PATHS and scope["method"] == "POST":
        return await jsonrpc.serve(host, entry, scope, receive, send)
    if rest_path in JSONRPC_PATHS:
        raise MethodNotAllowedError(("POST", "OPTIONS"))
    if rest_path == WEBSOCKET_PATH:
        raise UpgradeRequiredError("websocket")
    if rest_path not in cards.PATHS:
        route = route_of_v03(scope) or await route_beside_1_0(host, entry, scope)
        return await rest.serve(host, entry, scope, receive, send, route)
    await cards.serve_card(entry, scope, send)
    return None


async def _refuse(scope: Any, send: Any, is_jsonrpc: bool, error: A2AError) -> None:
    """What fails before a binding has taken the request, in the form of the binding that the request is for."""
    if is_jsonrpc and scope["method"] == "POST":
        await jsonrpc.respond_error(send, error, jsonrpc.NO_ID)
    else:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        media_type = answer_type(headers.get(b"accept", ""), headers.get(b"content-type", ""))
        await respond_error(send, error, JSON if is_v03(scope) else media_type, is_v03(scope))


async def respond_error(send: Any, error: A2AError, media_type: bytes, v03: bool = False) -> None:
    """A google.rpc.Status (§11.6), or what 0.3 has for it."""
    body = msgspec.json.encode(http_error_v03(error) if v03 else http_error(error))
    await respond(send, codes_of(error).http, body, media_type, error_headers(error))
