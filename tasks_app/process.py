"""The host of this process: started once, kept up while it lives, stopped with it."""

from __future__ import annotations

import asyncio

from tasks_app.execution.upkeep import extend_leases, keep_up, sweep
from tasks_app.host import Host

_current: Host | None = None
_upkeep: asyncio.Task[None] | None = None
_starting: asyncio.Lock | None = None


async def get_host(role: str = "web") -> Host:
    """The host of this process, started on first use (the server's start-up does so, where it tells of it)."""
    global _current, _starting, _upkeep
    if _current is None:
        _starting = _starting or asyncio.Lock()
        async with _starting:
            if _current is None:
                host = Host(role)
                await host.start()
                jobs = (extend_leases, sweep) if role == "web" else (extend_leases,)  # beat asks a worker to sweep
                _upkeep = asyncio.create_task(keep_up(host, *jobs), name="upkeep")
                _current = host
    return _current


async def end_runs() -> None:
    """End what runs and streams in this process, before its connections are closed."""
    if _current is not None:
        await _current.end_runs()


async def stop_host() -> None:
    """Stop the host of this process, if there is one."""
    global _current
    host, _current = _current, None
    if _upkeep is not None:
        _upkeep.cancel()
    if host is not None:
        await host.stop()
