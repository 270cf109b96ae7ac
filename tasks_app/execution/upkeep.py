"""What a process does all the time for the tasks of all, and ending a task from outside of its run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from protocol.errors import UnavailableError
from protocol.ids import new_id
from protocol.model import Message, Part, Role
from protocol.states import TaskState
from tasks_app.execution.draft import TaskDraft
from tasks_app.execution.heartbeat import INTERVAL_SECONDS
from tasks_app.tables.record import TaskRecord

if TYPE_CHECKING:
    from tasks_app.execution.host import Host

logger = logging.getLogger(__name__)


async def keep_up(host: Host, *jobs: Callable[[Host], Awaitable[object]]) -> None:
    """Do the jobs every few seconds, and at once when tasks were queued, until cancelled."""
    while True:
        try:
            async with asyncio.timeout(INTERVAL_SECONDS):
                await host.called.wait()
        except TimeoutError:
            pass
        host.called.clear()
        for job in jobs:
            try:
                await job(host)
            except UnavailableError as error:
                logger.warning("%s waits for the database: %s", job.__name__, type(error).__name__)
            except Exception:
                logger.exception("%s failed and will be tried again", job.__name__)


async def end_task(
    host: Host, record: TaskRecord, state: TaskState, text: str = "", *, if_unheld: bool = False
) -> bool:
    """End a task from outside, fencing off whoever runs it. False if it moved on meanwhile: read it again.

    `if_unheld`: also if somebody holds its lease, who was taken for dead and is heard again.
    """
    draft = TaskDraft(replace(record, attempt=record.attempt + 1))
    message = Message(message_id=new_id(), role=Role.AGENT, parts=[Part(text=text)]) if text else None
    draft.move(state, message)
    change = draft.change(record)
    change.if_unheld = if_unheld
    if not await host.journal.submit(change):
        return False
    execution = host.executions.get(record.id)
    if execution is not None:
        execution.fence()
    return True
