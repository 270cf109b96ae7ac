"""The host of this process: started once, kept up while it lives, stopped with it."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial

from tasks_app.execution.cancelling import cancel_here
from tasks_app.execution.cascade import Cascade, cancel_orphans
from tasks_app.execution.claiming import Claims
from tasks_app.execution.handover import take_answer
from tasks_app.execution.host import Behaviours, Host
from tasks_app.execution.missed import hear_missed
from tasks_app.execution.repeating import requeue
from tasks_app.execution.sweeping import Sweeper, sweep
from tasks_app.execution.upkeep import keep_up
from tasks_app.operations.delegating import HostDelegations

_current: Host | None = None
_upkeep: asyncio.Task[None] | None = None
_starting: asyncio.Lock | None = None


def make_host(role: str) -> Host:
    """A host that is not started yet, with what is built on it."""
    return Host(role, _behaviours)


def _behaviours(host: Host) -> Behaviours:
    cascade, claims = Cascade(host), Claims(host)
    return Behaviours(
        delegations=HostDelegations(host),
        on_fruitless=cascade.cancel_children,
        on_cancel=partial(cancel_here, host),
        on_answer=partial(take_answer, host),
        take_queued=claims.take,
        room=claims.room,
        hand_back=partial(requeue, host, given_up=True),
        sweep=Sweeper(host).look,
        cancel_orphans=cascade.cancel_orphans,
    )


async def get_host(role: str = "web") -> Host:
    """The host of this process, started on first use (the server's start-up does so, where it tells of it)."""
    global _current, _starting, _upkeep
    if _current is None:
        _starting = _starting or asyncio.Lock()
        async with _starting:
            if _current is None:
                host = make_host(role)
                host.lasting.on_broken = _end_process
                await host.start()
                host.heartbeat.start()
                _upkeep = asyncio.create_task(keep_up(host, hear_missed, sweep, cancel_orphans), name="upkeep")
                host.lasting.keep(_upkeep)
                _current = host
    return _current


def _end_process() -> None:
    """At once, since an orderly end would wait for what has ended. What was acknowledged is stored, others find the
    runs that were here, and whoever keeps this process up starts it again."""
    logging.shutdown()
    os._exit(os.EX_SOFTWARE)


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
