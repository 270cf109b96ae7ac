"""What this process was told about its runs while it was not listening: a job of its upkeep, besides notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.states import RUNNING
from tasks_app.execution.execution import Execution
from tasks_app.execution.handover import take_answer

if TYPE_CHECKING:
    from tasks_app.execution.host import Host

_LOOK = """SELECT t.id, t.attempt, t.cancel_requested_at IS NOT NULL
    FROM unnest(%s::text[], %s::int[]) AS i(id, attempt)
    JOIN tasks_app_task t ON t.id = i.id WHERE t.cancel_requested_at IS NOT NULL OR t.attempt <> i.attempt"""


async def hear_missed(host: Host) -> None:
    """Cancel the runs that somebody wants cancelled; give answers to those that wait, or end them if there is none."""
    runs = {i: e for i, e in host.executions.items() if e.record.state in RUNNING or e.waits}
    if not runs:
        return
    rows = await host.store.query(_LOOK, [list(runs), [e.record.attempt for e in runs.values()]])
    for task_id, attempt, cancel_requested in rows:
        execution = runs[task_id]
        if cancel_requested and attempt == execution.record.attempt:
            if not execution.cancelling:
                host.spawn(host.behaviours.on_cancel(task_id))
        elif attempt != execution.record.attempt and execution.waits:
            host.spawn(_find_answer(host, execution))


async def _find_answer(host: Host, execution: Execution) -> None:
    """The task of a run that waits went on: with an answer for it, or without it."""
    await take_answer(host, execution.record.id)
    if execution.waits:
        execution.fence()
