"""Queueing tasks again whose runs are to be repeated: lost ones, and those of a process that stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents.models import Agent
from tasks_app.journal import leases

if TYPE_CHECKING:
    from tasks_app.execution.host import Host


async def requeue(host: Host, runs: Sequence[tuple[str, int]], *, given_up: bool = False) -> None:
    """Queue the tasks of runs (task id, attempt) under a new attempt, and call for whoever can run them.

    `given_up`: this process runs them and stops. Otherwise what has been heard of meanwhile stays as it is.
    """
    if not runs:
        return
    elsewhere = False
    for task_id, attempt, agent_id in await leases.requeue(host.store, runs, given_up=given_up):
        entry = host.registry.by_id(agent_id)
        if entry is None:
            continue  # It is called for until somebody knows the agent, or its time is over.
        if entry.execution == host.role and not host.draining:
            host.behaviours.take_queued(task_id, attempt)
        elif entry.execution == Agent.Execution.WORKER:
            host.doorbell.ring(task_id, attempt)
        else:
            elsewhere = True
    if elsewhere:
        await leases.call_for_help(host.store)
