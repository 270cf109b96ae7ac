"""The HTTP+JSON binding (§11): Django REST framework's views, called from the ASGI router without Django's handler."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http.response import HttpResponseBase

from a2a_host.bindings.http import ClientGone, Headers, read_body, respond
from a2a_host.bindings.rest.framework import EventStreamResponse
from a2a_host.bindings.rest.routes import Route, find_route, split_path
from a2a_host.bindings.service_parameters import ServiceParameters, read_service_parameters
from a2a_host.bindings.sse import EventStream
from agents.registry import AgentEntry
from protocol.errors import AgentNotFoundError, UnauthenticatedError
from tasks_app.execution.host import Host
from tasks_app.operations import Call


async def serve(
    host: Host, entry: AgentEntry, scope: Any, receive: Any, send: Any, route: Route | None = None
) -> EventStream | None:
    """Answer one request below an agent's URL; a stream is returned. Raises A2AError for what no view takes.

    `route` is that of another dialect of HTTP+JSON, None for 1.0.
    """
    route = route or find_route(split_path(scope["raw_path"], base=2))
    if route.tenant not in ("", entry.slug):
        raise AgentNotFoundError(route.tenant)
    parameters = read_service_parameters(scope)
    call = authenticated(host, entry, parameters)
    body = b""
    try:
        if isinstance(call, Call):
            body = await read_body(receive, entry.max_request_bytes, parameters.declared_length)
    except ClientGone:
        return None
    answering = answer(call, route, parameters, body, scope, send)
    del body
    return await answering


def authenticated(host: Host, entry: AgentEntry, parameters: ServiceParameters) -> Call | UnauthenticatedError:
    """The call, or why there is none: the view says so in its dialect. It needs no body for that."""
    try:
        return parameters.call(host, entry, "HTTP+JSON")
    except UnauthenticatedError as error:
        return error


async def answer(
    call: Call | UnauthenticatedError,
    route: Route,
    parameters: ServiceParameters,
    body: bytes,
    scope: Any,
    send: Any,
) -> EventStream | None:
    """Answer a request that was read; a stream is returned."""
    request: Any = ASGIRequest(scope, BytesIO(body))
    request.META["CONTENT_LENGTH"] = str(len(body))
    del body
    request.call, request.parameters, request.tenant = call, parameters, route.tenant
    response = await route.view(request, **route.arguments)
    if isinstance(response, EventStreamResponse):
        return EventStream(response.frames)
    await _send(send, response)
    return None


async def _send(send: Any, response: HttpResponseBase) -> None:
    rendered: Any = response.render()  # type: ignore[attr-defined]
    extra: Headers = [
        (name.lower().encode(), value.encode("latin-1"))
        for name, value in rendered.items()
        if name.lower()
        not in ("content-type", "content-length", "vary", "allow" if rendered.status_code != 405 else "")
    ]
    extra.append((b"vary", b"Accept"))
    await respond(send, rendered.status_code, rendered.content, rendered["content-type"].encode(), extra)
