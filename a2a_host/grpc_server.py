"""The gRPC process: the host as a gRPC server, ended by SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal

import uvloop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")

_TO_LEAVE = 2.0  # seconds for answers, once runs and callers who wait had theirs


async def serve() -> None:
    """Serve until SIGTERM or SIGINT; then open calls have SHUTDOWN_GRACE_SECONDS and two more."""
    from django.conf import settings

    from a2a_host.bindings.grpc.server import make_server
    from a2a_host.bindings.grpc.transport.server import tls_context
    from a2a_host.lifespan import spare_the_collector
    from a2a_host.open_files import raise_limit
    from a2a_host.services.network import join
    from tasks_app.processes.process import end_runs, get_host, stop_host

    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    raise_limit()
    spare_the_collector()
    host = await get_host()
    server, health = make_server(host)
    tls = tls_context(settings.GRPC_TLS_CERT, settings.GRPC_TLS_KEY) if settings.GRPC_TLS_CERT else None
    await server.start(join(settings.HOST, settings.GRPC_PORT), tls)
    await stopping.wait()
    health.stop()
    # Callers who wait hear how their tasks ended while their connections are still there.
    await asyncio.gather(server.stop(settings.SHUTDOWN_GRACE_SECONDS + _TO_LEAVE), end_runs())
    await stop_host()


def main() -> None:
    """Set Django up and serve."""
    import django

    django.setup()
    uvloop.run(serve())


if __name__ == "__main__":
    main()
