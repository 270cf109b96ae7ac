"""The request that opens a connection: who is calling and how, and how it is refused."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import parse_qsl

from a2a_host.bindings.errors import codes_of, error_headers, jsonrpc_error
from a2a_host.bindings.http import JSON
from a2a_host.bindings.jsonrpc import NO_ID
from a2a_host.bindings.service_parameters import ServiceParameters, read_service_parameters
from protocol.errors import A2AError

SUBPROTOCOL = "a2a.jsonrpc.v1"
BEARER_PREFIX = "a2a.bearer."
"""Before a key in base64url, as a subprotocol that is offered and never chosen: browsers can set no headers."""

_DENIAL = "websocket.http.response"


def read_upgrade(scope: Any) -> ServiceParameters:
    """What holds for all calls of the connection: headers, and for browsers query and offered subprotocols."""
    # The agent's other addresses, such as those on an extended card, are http or https.
    scheme = scope.get("scheme", "ws").replace("ws", "http", 1)
    parameters = read_service_parameters({**scope, "scheme": scheme})
    parameters.last_event_id = ""  # It could mean any of the streams.
    if not parameters.extensions:
        pairs = parse_qsl(scope["query_string"].decode("latin-1"))
        parameters.extensions = ",".join(value for name, value in pairs if name.lower() == "a2a-extensions")
    offered = [name for name in scope["subprotocols"] if name.startswith(BEARER_PREFIX)]
    if offered and not parameters.authorization:
        parameters.authorization = f"Bearer {_decoded(offered[0].removeprefix(BEARER_PREFIX))}"
    return parameters


def chosen_subprotocol(scope: Any) -> str | None:
    """Ours, where the client offers it."""
    return SUBPROTOCOL if SUBPROTOCOL in scope["subprotocols"] else None


async def refuse(scope: Any, send: Any, error: A2AError) -> None:
    """Answer with the status and the document of JSON-RPC over HTTP; with 403 where the server knows no more."""
    if _DENIAL not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-type", JSON), *error_headers(error)]
    await send({"type": f"{_DENIAL}.start", "status": codes_of(error).jsonrpc_http, "headers": headers})
    await send({"type": f"{_DENIAL}.body", "body": jsonrpc_error(error, NO_ID), "more_body": False})


def _decoded(key: str) -> str:
    """The key, or what is no key at all."""
    try:
        return base64.b64decode(key + "=" * (-len(key) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return key
