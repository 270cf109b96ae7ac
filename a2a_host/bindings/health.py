"""GET /healthz: whether this process serves."""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.http import JSON, respond
from tasks_app.execution.host import Host
from tasks_app.processes.process import get_host


async def serve_health(scope: Any, receive: Any, send: Any) -> None:
    """200 when the process has its database and all its parts, 503 when not. Answers `{"status":"ok"}`."""
    try:
        host = await get_host()
        serves = await is_healthy(host)
    except Exception:
        serves = False
    if serves:
        await respond(send, 200, b'{"status":"ok"}', JSON)
    else:
        await respond(send, 503, b'{"status":"unavailable"}', JSON)


async def is_healthy(host: Host) -> bool:
    """Whether a host can do its work. Raises UnavailableError."""
    await host.store.query("SELECT 1", [])
    return not host.lasting.broken
