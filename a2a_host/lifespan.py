"""Start-up and shutdown of a web process."""

from __future__ import annotations

import gc
from typing import Any

from tasks_app.processes.process import get_host, stop_host


async def serve_lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Start the host before the first request, stop it after the last. A failing start ends the server."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            spare_the_collector()
            await get_host()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop_host()
            await send({"type": "lifespan.shutdown.complete"})
            return


def spare_the_collector() -> None:
    """What is loaded now stays: no collection need look at it again, and requests leave few cycles behind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
