"""Start-up and shutdown of a web process."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from tasks_app.execution.upkeep import extend_leases, keep_up, sweep
from tasks_app.host import get_host, stop_host


async def serve_lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Start the host before the first request, stop it after the last. A failing start ends the server."""
    upkeep: asyncio.Task[None] | None = None
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            _spare_the_collector()
            upkeep = asyncio.create_task(keep_up(await get_host(), extend_leases, sweep), name="upkeep")
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            if upkeep is not None:
                upkeep.cancel()
            await stop_host()
            await send({"type": "lifespan.shutdown.complete"})
            return


def _spare_the_collector() -> None:
    """What is loaded now stays: no collection need look at it again, and requests leave few cycles behind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
