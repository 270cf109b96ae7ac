"""GetTask (§3.1.3) and CancelTask (§3.1.5)."""

from __future__ import annotations

import asyncio

from protocol.errors import InternalError, TaskNotCancelableError, TaskNotFoundError
from protocol.requests import CancelTaskRequest, GetTaskRequest
from protocol.states import RUNNING, TaskState
from tasks_app.execution.upkeep import end_task
from tasks_app.host import Host
from tasks_app.journal import leases
from tasks_app.operations.call import Call
from tasks_app.operations.waiting import is_settled
from tasks_app.record import TaskRecord

_TRIES = 5
_ASK_AGAIN_SECONDS = 0.5


async def get_task(call: Call, request: GetTaskRequest) -> TaskRecord:
    """The task as it is now. Raises TaskNotFoundError."""
    return await call.load_task(request.id)


async def cancel_task(call: Call, request: CancelTaskRequest) -> TaskRecord:
    """Stop the agent's code wherever it runs, and return the CANCELED task.

    Raises TaskNotFoundError, and TaskNotCancelableError for a task that has ended, also when it ended in another way
    while this call was waiting. Code that ignores the request beyond its grace time is fenced off.
    """
    record = await call.load_task(request.id)
    if record.state.terminal:
        raise TaskNotCancelableError(record.id, record.state)
    for _ in range(_TRIES):
        worker = record.worker
        await _stop_run(call, record)
        record = await call.load_task(record.id)
        if not record.state.terminal and record.worker in (worker, None):
            if await end_task(call.host, record, TaskState.CANCELED):
                _fence_run(call.host, record.id)
            record = await call.load_task(record.id)
        if record.state is TaskState.CANCELED:
            return record
        if record.state.terminal:
            raise TaskNotCancelableError(record.id, record.state)
    raise InternalError


async def _stop_run(call: Call, record: TaskRecord) -> None:
    """Ask the run of a task to end, here or in another process, and wait as long as the agent's grace time."""
    execution = call.host.executions.get(record.id)
    if execution is not None:
        await execution.cancel()
    elif record.worker is not None and record.state in RUNNING:
        await _stop_elsewhere(call, record)


async def _stop_elsewhere(call: Call, record: TaskRecord) -> None:
    """The process that has just claimed a task may hear of the request before it knows the task: ask again."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + call.entry.cancel_grace_seconds + 1
    while (left := deadline - loop.time()) > 0:
        await leases.request_cancel(call.host.store, record.id, record.attempt)
        if await _wait_for_end(call.host, record.id, min(left, _ASK_AGAIN_SECONDS)):
            return


async def _wait_for_end(host: Host, task_id: str, seconds: float) -> bool:
    async with host.hub.follow(task_id) as follower:
        try:
            async with asyncio.timeout(seconds):
                while (record := await host.store.load(task_id)) is not None and not is_settled(record):
                    follower.begin(record.last_seq)
                    await follower.next(seconds)
        except TimeoutError:
            return False
    if record is None:
        raise TaskNotFoundError(task_id)
    return True


def _fence_run(host: Host, task_id: str) -> None:
    execution = host.executions.get(task_id)
    if execution is not None:
        execution.fence()
