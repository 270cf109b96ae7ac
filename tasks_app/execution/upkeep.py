"""What keeps running tasks honest: leases are extended while their process lives, and tasks that nobody holds any more
are queued again or FAILED. Nothing stays SUBMITTED or WORKING for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings

from protocol.errors import UnavailableError
from protocol.ids import new_id
from protocol.model import Message, Part, Role
from protocol.states import RUNNING, TaskState
from tasks_app.execution.draft import TaskDraft
from tasks_app.journal import leases
from tasks_app.record import TaskRecord

if TYPE_CHECKING:
    from tasks_app.host import Host

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = settings.LEASE_SECONDS / 5
ABANDONED_TEXT = "The process that ran this task stopped, so its result is unknown."


async def keep_up(host: Host, *jobs: Callable[[Host], Awaitable[object]]) -> None:
    """Do the jobs every few seconds until cancelled."""
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        for job in jobs:
            try:
                await job(host)
            except UnavailableError as error:
                logger.warning("%s waits for the database: %s", job.__name__, type(error).__name__)
            except Exception:  # Without heartbeats every run of the process would be taken for dead.
                logger.exception("%s failed and will be tried again", job.__name__)


async def extend_leases(host: Host) -> None:
    """Tell the database that the runs of this process live; fence those that it gave to another attempt."""
    runs = {i: e for i, e in host.executions.items() if e.record.state in RUNNING}
    if not runs:
        return
    kept = await leases.extend(host.store, [(i, e.record.attempt) for i, e in runs.items()])
    for task_id, execution in runs.items():
        if task_id not in kept and execution.lost:
            execution.fence()


async def sweep(host: Host) -> int:
    """Ring again for queued tasks, FAIL those whose process died. Returns how many were looked at.

    A process has died when its lease was over in the sweep before this one too: after an outage of the database all
    leases are over, and the living extend theirs first.
    """
    ids = [i for i in await leases.expired(host.store) if i not in host.executions]
    before, host.overdue = host.overdue, set(ids)
    if not ids:
        return 0
    rung = await leases.ring_again(host.store, ids)
    for task_id, attempt in rung:
        host.doorbell.ring(task_id, attempt)
    queued = {task_id for task_id, _ in rung}
    for record in (await host.store.load_many([i for i in ids if i not in queued])).values():
        if record.worker is not None and record.id in before:
            logger.warning("Task %s lost its process %s", record.id, record.worker)
            await end_task(host, record, TaskState.FAILED, ABANDONED_TEXT)
    return len(ids)


async def end_task(host: Host, record: TaskRecord, state: TaskState, text: str = "") -> bool:
    """End a task from outside, fencing off whoever runs it. False if it moved on meanwhile: read it again."""
    draft = TaskDraft(replace(record, attempt=record.attempt + 1))
    message = Message(message_id=new_id(), role=Role.AGENT, parts=[Part(text=text)]) if text else None
    draft.move(state, message)
    return await host.journal.submit(draft.change(record))
