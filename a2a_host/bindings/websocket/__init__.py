"""JSON-RPC over WebSocket, a custom binding (§12). docs/websocket.md specifies it."""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.websocket.consumer import JsonRpcConsumer
from a2a_host.bindings.websocket.upgrade import refuse
from protocol.errors import RouteNotFoundError

serve_websocket = JsonRpcConsumer.as_asgi()


async def refuse_websocket(scope: Any, receive: Any, send: Any) -> None:
    """Nothing takes connections here."""
    await receive()
    await refuse(scope, send, RouteNotFoundError(scope["path"]))
