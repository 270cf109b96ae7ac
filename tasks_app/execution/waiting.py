"""Runs that wait in their process for the next message: the row says so, so that every process knows where to hand it.

`waiting_attempt` in the task's row is the attempt whose run waits, and counts while its lease does. It is no part of
the task's version, as leases are not.
"""

from __future__ import annotations

import logging

from protocol.errors import UnavailableError
from protocol.states import INTERRUPTED
from tasks_app.journal.leases import LEASE
from tasks_app.tables.record import TaskRecord
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

ANSWER_CHANNEL = "a2a_answer"
"""PostgreSQL's channel on which a process hears that a task was given to it: `<origin> <task id>`."""

_INTERRUPTED = ", ".join(str(s.number) for s in sorted(INTERRUPTED))
_BEGIN = f"""UPDATE tasks_app_task SET waiting_attempt = attempt, worker = %s, lease_until = now() + %s
    WHERE id = %s AND attempt = %s AND state IN ({_INTERRUPTED}) RETURNING id"""
_END = """UPDATE tasks_app_task SET waiting_attempt = NULL WHERE id = %s AND waiting_attempt = %s RETURNING id"""


class Waits:
    """The waiting runs of a process, in the rows of their tasks."""

    def __init__(self, store: Store, origin: str) -> None:
        self._store = store
        self._origin = origin

    async def begin(self, record: TaskRecord) -> bool:
        """Say that the run of this attempt waits. False: somebody else was first to go on with the task, or end it."""
        return bool(await self._store.query(_BEGIN, [self._origin, LEASE, record.id, record.attempt]))

    async def end(self, record: TaskRecord) -> None:
        """Say that it does not wait any more, so that an answer is a new run."""
        await self._store.query(_END, [record.id, record.attempt])

    async def tell(self, origin: str, task_id: str) -> None:
        """Tell a process that a task was given to it. If the database is away now, that process finds it by itself."""
        try:
            await self._store.query("SELECT pg_notify(%s, %s)", [ANSWER_CHANNEL, f"{origin} {task_id}"])
        except UnavailableError:
            logger.warning("Process %s could not be told of the answer for task %s", origin, task_id)


def waits_in_process(record: TaskRecord) -> bool:
    """Whether a living process, the record's worker, holds a run that waits for the next message of the task."""
    return (
        record.waiting_attempt == record.attempt
        and record.state in INTERRUPTED
        and record.worker is not None
        and record.leased
    )
