"""GetTask (§3.1.3) and CancelTask (§3.1.5)."""

from __future__ import annotations

from protocol.requests import CancelTaskRequest, GetTaskRequest
from tasks_app.execution.cancelling import cancel_record
from tasks_app.operations.call import Call
from tasks_app.tables.record import TaskRecord


async def get_task(call: Call, request: GetTaskRequest) -> TaskRecord:
    """The task as it is now. Raises TaskNotFoundError."""
    return await call.load_task(request.id)


async def cancel_task(call: Call, request: CancelTaskRequest) -> TaskRecord:
    """Stop the agent's code wherever it runs, and return the CANCELED task.

    Raises TaskNotFoundError, and TaskNotCancelableError for a task that has ended, also when it ended in another way
    while this call was waiting. Code that ignores the request beyond its grace time is fenced off.
    """
    return await cancel_record(call.host, await call.load_task(request.id))
