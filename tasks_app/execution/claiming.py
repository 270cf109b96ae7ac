"""Taking queued tasks and running them here: for the doorbells of a worker, and for what a sweep has found."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from agents.runtimes.base import Caller
from protocol.states import RUNNING
from protocol.timestamps import now
from tasks_app.execution.draft import TaskDraft
from tasks_app.execution.execution import Execution
from tasks_app.execution.turn import as_begun, first_attempt_of, message_of, turn_of

if TYPE_CHECKING:
    from tasks_app.execution.host import Host

logger = logging.getLogger(__name__)

_RUNS_AT_ONCE = 500


class Claims:
    """The queued tasks that this process is about to run: each once, however often it is called, and so many at a time
    that run. One that waits for its caller holds no place."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._places = asyncio.Semaphore(_RUNS_AT_ONCE)
        self._taken: set[tuple[str, int]] = set()

    def room(self) -> int:
        """How many more could begin now."""
        return 0 if self._host.draining else max(0, _RUNS_AT_ONCE - len(self._taken))

    def take(self, task_id: str, attempt: int) -> None:
        """Run a task as soon as there is a place, if it is queued under this attempt then."""
        if (task_id, attempt) not in self._taken and not self._host.draining:
            self._taken.add((task_id, attempt))
            self._host.spawn(self._run(task_id, attempt))

    async def _run(self, task_id: str, attempt: int) -> None:
        try:
            async with self._places:
                execution = await claim_task(self._host, task_id, attempt)
                if execution is not None:
                    await execution.settled()
        except Exception:
            logger.exception("Task %s could not be started; the sweep calls again", task_id)
        finally:
            self._taken.discard((task_id, attempt))


async def claim_task(host: Host, task_id: str, attempt: int, *, given: bool = False) -> Execution | None:
    """Take a queued task, or one that was `given` to this process, and start it here; None if it is not there under
    this attempt any more, or the host stops."""
    record = await host.store.load(task_id)
    if record is None or record.attempt != attempt or record.state not in RUNNING:
        return None
    if record.worker != (host.origin if given else None):
        return None
    entry = host.registry.by_id(record.agent_id)
    if entry is None or host.draining:
        return None
    deadline_at = record.deadline_at or now() + timedelta(seconds=entry.deadline_seconds)
    if not await host.journal.submit(TaskDraft(record).change(record, host.origin, deadline_at=deadline_at)):
        return None
    record = replace(  # What was read is shared.
        record.copy(), version=record.version + 1, worker=host.origin, deadline_at=deadline_at
    )
    turn = turn_of(record)
    caller = Caller(record.owner, authenticated=turn.authenticated)
    first = first_attempt_of(record, turn)
    begun = as_begun(record, first)
    request = turn.request(message_of(begun))
    extensions = frozenset(turn.extensions)
    execution = host.execute(entry, record, request, caller, extensions, turn.answered, begun, first)
    execution.acknowledged = turn.acknowledged
    return execution
