"""The web process: uvicorn on a listening socket that is handed to it."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import warnings

import uvicorn
from django.conf import settings

from a2a_host.joined_writes import JoiningHttpProtocol
from a2a_host.open_files import raise_limit
from a2a_host.websocket_protocol import WebSocketProtocol

LISTENER = "A2A_HOST_LISTENER"  # Environment variable: number of the open file that is the socket.


class Server(uvicorn.Server):
    """Ends runs and streams while it closes, so that callers who wait hear how their tasks ended."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, answer those that wait, end."""
        from tasks_app.processes.process import end_runs  # Django is set up by now, not when this module is read

        ending = asyncio.create_task(end_runs())
        await super().shutdown(sockets)
        await ending


def main() -> None:
    """Serve until SIGTERM; then runs and callers who wait have SHUTDOWN_GRACE_SECONDS, and their answers two more."""
    # WhiteNoise opens small files of ours; reading them at once is what is wanted.
    warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")
    config = uvicorn.Config(
        "a2a_host.asgi:application",
        loop="uvloop",
        http=JoiningHttpProtocol,
        ws=WebSocketProtocol,
        ws_max_size=256 * 1024 * 1024,  # Until the agent is known, whose limit it is then; no agent's is larger.
        ws_ping_interval=settings.KEEP_ALIVE_SECONDS,
        ws_ping_timeout=settings.KEEP_ALIVE_SECONDS,
        ws_per_message_deflate=False,  # It would cost every connection memory, and every message time on the loop.
        lifespan="on",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # The host knows its TRUSTED_PROXIES itself.
        timeout_keep_alive=65,  # Longer than the pools of usual clients and proxies keep a connection.
        timeout_graceful_shutdown=math.ceil(settings.SHUTDOWN_GRACE_SECONDS) + 2,
        limit_concurrency=raise_limit(),  # One more gets a 503 that says so, not a connection that is cut.
    )
    Server(config).run(sockets=[socket.socket(fileno=int(os.environ.pop(LISTENER)))])


if __name__ == "__main__":
    main()
