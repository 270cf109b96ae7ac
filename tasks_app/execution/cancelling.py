"""Cancelling a task wherever it runs, or waits to be run: for CancelTask, the task page and the children of a task."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from protocol.errors import InternalError, TaskNotCancelableError, TaskNotFoundError
from protocol.states import RUNNING, TaskState
from tasks_app.execution.upkeep import end_task
from tasks_app.execution.waiting import waits_in_process
from tasks_app.tables.record import TaskRecord

if TYPE_CHECKING:
    from tasks_app.execution.host import Host

_TRIES = 5
_ASK_AGAIN_SECONDS = 0.5
_GRACE_SECONDS = 5  # of an agent that was deleted


async def cancel_record(host: Host, record: TaskRecord) -> TaskRecord:
    """Stop the agent's code, and return the CANCELED task. A queued task never starts.

    Raises TaskNotCancelableError for a task that has ended, also when it ended in another way meanwhile. Code that
    ignores the request beyond its agent's grace time is fenced off.
    """
    if record.state.terminal:
        raise TaskNotCancelableError(record.id, record.state)
    for _ in range(_TRIES):
        worker = record.worker
        await _stop_run(host, record)
        record = await load_task(host, record.id)
        if not record.state.terminal and record.worker in (worker, None):
            if await end_task(host, record, TaskState.CANCELED):
                _fence_run(host, record.id)
            record = await load_task(host, record.id)
        if record.state is TaskState.CANCELED:
            return record
        if record.state.terminal:
            raise TaskNotCancelableError(record.id, record.state)
    raise InternalError


async def cancel_here(host: Host, task_id: str) -> None:
    """Do what somebody has asked of this process: cancel a task that it runs."""
    record = await host.store.load(task_id)
    with suppress(TaskNotCancelableError, TaskNotFoundError):  # It has ended meanwhile.
        if record is not None:
            await cancel_record(host, record)


async def load_task(host: Host, task_id: str, *, whole: bool = True) -> TaskRecord:
    """A task as it is now, whosever it is, `whole` or without history and artifacts. Raises TaskNotFoundError."""
    record = await (host.store.load(task_id) if whole else host.store.load_row(task_id))
    if record is None or record.state is TaskState.UNSPECIFIED:  # It was answered with a Message: no task.
        raise TaskNotFoundError(task_id)
    return record


async def _stop_run(host: Host, record: TaskRecord) -> None:
    """Ask the run of a task to end, here or in another process, and wait as long as the agent's grace time."""
    execution = host.executions.get(record.id)
    if execution is not None:
        if not await execution.cancel():
            await execution.leave()  # It may go on to write, faster than anybody could end its task.
    elif record.worker is not None and (record.state in RUNNING or waits_in_process(record)):
        await _stop_elsewhere(host, record)


async def _stop_elsewhere(host: Host, record: TaskRecord) -> None:
    """The process that has just claimed a task may hear of the request before it knows the task: ask again."""
    entry = host.registry.by_id(record.agent_id)
    grace = _GRACE_SECONDS if entry is None else entry.cancel_grace_seconds
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace + 1
    while (left := deadline - loop.time()) > 0:
        asked = await host.cancel_requests.get((record.id, record.attempt))
        if not asked or await _wait_for_change(host, record, min(left, _ASK_AGAIN_SECONDS)):
            return


async def _wait_for_change(host: Host, record: TaskRecord, seconds: float) -> bool:
    """Whether the run ended, in any way, within a time."""
    async with host.hub.follow(record.id) as follower:
        try:
            async with asyncio.timeout(seconds):
                while _goes_on(record, now := await load_task(host, record.id, whole=False)):
                    follower.begin(now.last_seq)
                    await follower.next(seconds)
        except TimeoutError:
            return False
    return True


def _goes_on(before: TaskRecord, now: TaskRecord) -> bool:
    """Whether the run is where it was: it runs, or waits in its process for an answer."""
    return now.attempt == before.attempt and (now.state in RUNNING or waits_in_process(now))


def _fence_run(host: Host, task_id: str) -> None:
    execution = host.executions.get(task_id)
    if execution is not None:
        execution.fence()
