"""Waiting for a task that may be run by any process."""

from __future__ import annotations

from protocol.errors import TaskNotFoundError, UnavailableError
from tasks_app.execution.host import Host
from tasks_app.live.hub import Follower
from tasks_app.operations.incoming import Accepted
from tasks_app.tables.record import EventKind, TaskRecord

_LOOK_AGAIN_SECONDS = 30.0
STOPPING = "The host stops while the task goes on: send the same message again, or ask for the task."


async def settled_record(host: Host, accepted: Accepted) -> TaskRecord:
    """The task once it is terminal or interrupted, or the exchange once it was answered with a Message.

    The message is stored, so nobody hears of a database that is away meanwhile. Raises UnavailableError when the host
    stops.
    """
    execution = accepted.execution
    if execution is not None:
        await execution.settled()
        if not execution.fenced:
            return execution.snapshot()
    return await _settled_elsewhere(host, accepted.record.id)


async def _settled_elsewhere(host: Host, task_id: str) -> TaskRecord:
    with host.hub.waiting():
        async with host.hub.follow(task_id) as follower:
            while True:
                try:
                    record = await host.store.load(task_id)
                    if record is None:
                        raise TaskNotFoundError(task_id)
                    if is_settled(record):
                        return record
                    follower.begin(record.last_seq)
                    await _next_settling(follower)
                except UnavailableError:  # A read that has waited for the database does so again.
                    if follower.stopping:
                        raise UnavailableError(retry_after=1, message=STOPPING) from None


async def _next_settling(follower: Follower) -> None:
    """Return at the next event that may settle the task, or after a while. Raises UnavailableError when it stops."""
    while events := await follower.next(_LOOK_AGAIN_SECONDS):
        if any(e.kind is EventKind.MESSAGE or (e.state is not None and e.state.settled) for e in events):
            return
    if follower.stopping:
        raise UnavailableError(retry_after=1)


def is_settled(record: TaskRecord) -> bool:
    """Whether a blocking send returns now (§3.2.2)."""
    return record.state.settled or record.state is record.state.UNSPECIFIED
