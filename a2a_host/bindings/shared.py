"""The endpoint that all agents share, /a2a: the tenant of a request is the slug of its agent. Without one it is for the
agent at the host root, if there is any.

JSON-RPC is posted to /a2a itself, its tenant is in `params`. HTTP+JSON is below it, with the tenant in the path
(`/a2a/{tenant}/message:send`, and `/a2a/{tenant}/v1/message:send` in 0.3) or, as in JSON-RPC, in the request. A card at
`/a2a/{tenant}/.well-known/agent-card.json` says all that.

JSON-RPC also answers at /a2a/v1/, where clients post to that know nothing but a base URL (`router.JSONRPC_PATHS`).
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Raw

from a2a_host.bindings import cards, jsonrpc, rest
from a2a_host.bindings.http import STRANGER_BYTES, ClientGone, read_body
from a2a_host.bindings.rest.routes import find_route, split_path
from a2a_host.bindings.rest.v03.routes import route_of_v03
from a2a_host.bindings.router import guard
from a2a_host.bindings.service_parameters import ServiceParameters, read_service_parameters
from a2a_host.bindings.sse import EventStream
from agents.access import CHALLENGE, identify, may_call
from agents.registry import AgentEntry
from protocol.errors import (
    A2AError,
    EnvelopeError,
    InvalidParamsError,
    MethodNotAllowedError,
    RequestTooLargeError,
    UnauthenticatedError,
    Violation,
)
from protocol.jsonrpc import decode_envelope
from tasks_app.execution.host import Host
from tasks_app.processes.process import get_host


class _Tenant(msgspec.Struct, gc=False):
    """The one member of a request that says where it goes. Its other rules are checked by its agent's binding."""

    tenant: str = ""


_JSONRPC_PATHS = ("/", "/v1", "/v1/")
_decoder = msgspec.json.Decoder(_Tenant)


def serve_shared(scope: Any, receive: Any, send: Any) -> Awaitable[None]:
    """ASGI application of /a2a and what is below it."""
    is_jsonrpc = _is_jsonrpc(scope)
    return guard(_serve_jsonrpc if is_jsonrpc else _serve_rest, is_jsonrpc, scope, receive, send)


def _is_jsonrpc(scope: Any) -> bool:
    return scope["url_route"]["kwargs"].get("rest", "/") in _JSONRPC_PATHS


async def _serve_jsonrpc(scope: Any, receive: Any, send: Any) -> EventStream | None:
    if scope["method"] != "POST":
        raise MethodNotAllowedError(("POST", "OPTIONS"))
    host = await get_host()
    parameters = read_service_parameters(scope)
    try:
        body = await _read(host, parameters, receive)
        envelope = decode_envelope(body)
    except ClientGone:
        return None
    except EnvelopeError as error:
        await jsonrpc.respond_error(send, error, error.id)
        return None
    try:
        call = parameters.call(host, _chosen(host, tenant_of(envelope.params), body), "JSONRPC")
    except A2AError as error:
        await jsonrpc.respond_error(send, error, envelope.id or jsonrpc.NO_ID)
        return None
    answering = jsonrpc.answer(call, parameters, envelope, send)
    del body, envelope  # a big body is not kept while the agent works
    return await answering


async def _serve_rest(scope: Any, receive: Any, send: Any) -> EventStream | None:
    host = await get_host()
    segments = split_path(scope["raw_path"], base=1)
    if "/" + "/".join(segments[1:]) in cards.PATHS:
        await cards.serve_shared_card(host.registry.get(segments[0]), scope, send)
        return None
    older = route_of_v03(scope)
    route = replace(older, tenant=segments[0]) if older else find_route(segments, tenant_first=True)
    tenant = route.tenant or _tenant_in_query(scope["query_string"])
    if tenant:
        return await rest.serve(host, host.registry.get(tenant), scope, receive, send, route)
    parameters = read_service_parameters(scope)
    try:
        body = await _read(host, parameters, receive)
    except ClientGone:
        return None
    call = rest.authenticated(host, _chosen(host, tenant_of(body), body), parameters)
    answering = rest.answer(call, route, parameters, body, scope, send)
    del body
    return await answering


async def _read(host: Host, parameters: ServiceParameters, receive: Any) -> bytes:
    """The body of a request that says in there which agent it is for: as much as any agent takes from its caller.

    Raises UnauthenticatedError for what is bigger than what is read of strangers, from who can call no agent without
    another key; RequestTooLargeError, ClientGone.
    """
    refusal, limits = UnauthenticatedError(CHALLENGE), [STRANGER_BYTES]
    try:
        caller = identify(host.registry, parameters.authorization or None, parameters.api_key or None)
        limits += [entry.max_request_bytes for entry in host.registry.entries() if may_call(entry, caller)]
    except UnauthenticatedError as error:
        refusal = error
    try:
        return await read_body(receive, max(limits), parameters.declared_length)
    except RequestTooLargeError:
        if len(limits) == 1:
            raise refusal from None
        raise


def tenant_of(request: Raw | bytes | None) -> str:
    """The tenant in the JSON of a request; "" where it names none or cannot be read."""
    if not request:
        return ""
    try:
        return _decoder.decode(request).tenant
    except (msgspec.DecodeError, RecursionError):
        return ""


def _tenant_in_query(query: bytes) -> str:
    return dict(parse_qsl(query.decode("latin-1"))).get("tenant", "")


def _chosen(host: Host, tenant: str, body: bytes) -> AgentEntry:
    entry = host.registry.get(tenant) if tenant else host.registry.root
    if entry is None:
        raise InvalidParamsError([Violation("tenant", "is required: the slug of the agent that the request is for")])
    if len(body) > entry.max_request_bytes:
        raise RequestTooLargeError(entry.max_request_bytes)
    return entry
