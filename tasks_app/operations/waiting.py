"""Waiting for a task that may be run by any process."""

from __future__ import annotations

from protocol.errors import UnavailableError
from tasks_app.host import Host
from tasks_app.operations.accepting import Accepted
from tasks_app.record import TaskRecord

_LOOK_AGAIN_SECONDS = 30.0


async def settled_record(host: Host, accepted: Accepted) -> TaskRecord:
    """The task once it is terminal or interrupted, or the exchange once it was answered with a Message."""
    execution = accepted.execution
    if execution is not None:
        await execution.settled()
        if not execution.fenced:
            return execution.snapshot()
    return await _settled_elsewhere(host, accepted.record.id)


async def _settled_elsewhere(host: Host, task_id: str) -> TaskRecord:
    async with host.hub.follow(task_id) as follower:
        while True:
            record = await host.store.load(task_id)
            if record is None:
                raise LookupError(task_id)
            if is_settled(record):
                return record
            follower.begin(record.last_seq)
            if not await follower.next(_LOOK_AGAIN_SECONDS) and follower.ended:
                raise UnavailableError(retry_after=1)


def is_settled(record: TaskRecord) -> bool:
    """Whether a blocking send returns now (§3.2.2)."""
    return record.state.settled or record.state is record.state.UNSPECIFIED
