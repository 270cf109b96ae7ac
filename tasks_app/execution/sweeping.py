"""Looking for tasks that nobody runs: lost ones are repeated or FAILED, queued ones run, overdue ones FAILED.

Every process looks, so one that is alive is enough. With LEASE_SECONDS = 8 (L) a process is heard every L/5, and looked
for as often: its lease is over at most L after its death, found over within L/5, and found so once more within another
L/5, which makes it dead: 11.2 s, and what the statements take. A process that could not look for a while, since the
database was away or it was stopped itself, first gives all others the time of a lease to be heard. One whose own
heartbeat the database does not take judges nobody: it takes those of others neither.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from django.conf import settings

from protocol.states import INTERRUPTED, RUNNING, TaskState
from tasks_app.execution.execution import OVERDUE_TEXT
from tasks_app.execution.heartbeat import BLIND_SECONDS, INTERVAL_SECONDS
from tasks_app.execution.repeating import requeue
from tasks_app.execution.upkeep import end_task
from tasks_app.journal import leases
from tasks_app.journal.leases import Expired
from tasks_app.tables.record import TaskRecord

if TYPE_CHECKING:
    from tasks_app.execution.host import Host

logger = logging.getLogger(__name__)

CONFIRM_SECONDS = INTERVAL_SECONDS * 0.9
"""How long a lease has been over, in this process's eyes, when its holder counts as dead."""

ABANDONED_TEXT = "The process that ran this task stopped, so its result is unknown."
_IN_VAIN = "The process that ran this task stopped, in each of {runs} runs, so its result is unknown."
_UNANSWERED = "Nobody answered within {time}, and the agent waits no longer."
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))

Ending = Callable[[TaskRecord], tuple[TaskState, str] | None]


class Sweeper:
    """The looks of one process."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._over: dict[tuple[str, int], float] = {}  # (task id, attempt): when its lease was first seen to be over
        self._looked_at = 0.0
        self._trusted_at = 0.0

    async def look(self) -> int:
        """Look once. Returns how many tasks were found that nobody holds."""
        if self._host.heartbeat.unheard:
            return 0
        found = [task for task in await leases.expired(self._host.store) if task.overdue or not self._runs_here(task)]
        now = time.monotonic()
        if self._looked_at and now - self._looked_at > BLIND_SECONDS:
            self._trusted_at = now + settings.LEASE_SECONDS
        await self._fail_overdue([task for task in found if task.overdue])
        in_time = [task for task in found if not task.overdue]
        await self._call_queued([task for task in in_time if task.worker is None])
        await self._give_up(self._lost([task for task in in_time if task.worker is not None]))
        await self._fail_unanswered()
        self._looked_at = time.monotonic()
        return len(found)

    async def _fail_overdue(self, tasks: Sequence[Expired]) -> None:
        attempts = {task.id: task.attempt for task in tasks}

        def ending(record: TaskRecord) -> tuple[TaskState, str] | None:
            same = record.attempt == attempts[record.id] and record.state in RUNNING
            return (TaskState.FAILED, OVERDUE_TEXT) if same else None

        await self._end(attempts, ending, if_unheld=True)

    async def _call_queued(self, tasks: Sequence[Expired]) -> None:
        """Those of this process's role are run here, as far as there is room; for others a worker is rung for."""
        host, room = self._host, self._host.behaviours.room()
        roles = {task.id: self._role_of(task) for task in tasks}
        mine = [task.id for task in tasks if roles[task.id] == host.role][:room]
        # Workers look too, and go first; only a web process can ring for those that are not here to look.
        others = [task.id for task in tasks if roles[task.id] != host.role and task.seconds > BLIND_SECONDS]
        if host.draining or not (mine or others):
            return
        for task_id, attempt in await leases.call_again(host.store, [*mine, *others]):
            if roles[task_id] == host.role:
                host.behaviours.take_queued(task_id, attempt)
            elif roles[task_id] == "worker":
                host.doorbell.ring(task_id, attempt)

    def _role_of(self, task: Expired) -> str:
        entry = self._host.registry.by_id(task.agent_id)
        return "" if entry is None else entry.execution

    def _lost(self, tasks: Sequence[Expired]) -> list[Expired]:
        """Those of the tasks whose processes are dead."""
        now, before = time.monotonic(), self._over
        self._over = {(task.id, task.attempt): before.get((task.id, task.attempt), now) for task in tasks}
        if now < max(self._trusted_at, self._host.heartbeat.resumed_at + settings.LEASE_SECONDS):
            return []
        known = [task for task in tasks if (task.id, task.attempt) in before]
        return [task for task in known if now - before[task.id, task.attempt] >= CONFIRM_SECONDS]

    def _runs_here(self, task: Expired) -> bool:
        return task.worker == self._host.origin and task.id in self._host.executions

    async def _give_up(self, tasks: Sequence[Expired]) -> None:
        """Queue the lost runs again that may be repeated, and end the others."""
        for task in tasks:
            logger.warning("Task %s lost its process %s in run %d", task.id, task.worker, task.attempt)
        again = [task for task in tasks if not task.cancel_requested and task.retries < self._retries_of(task)]
        lost = {task.id: task for task in tasks if task not in again}

        def ending(record: TaskRecord) -> tuple[TaskState, str] | None:
            task = lost[record.id]
            if record.attempt != task.attempt or record.state not in RUNNING:
                return None
            if task.cancel_requested:
                return TaskState.CANCELED, ""
            text = _IN_VAIN.format(runs=task.retries + 1) if task.retries else ABANDONED_TEXT
            return TaskState.FAILED, text

        await requeue(self._host, [(task.id, task.attempt) for task in again])
        await self._end(lost, ending, if_unheld=True)

    def _retries_of(self, task: Expired) -> int:
        entry = self._host.registry.by_id(task.agent_id)
        return 0 if entry is None else entry.max_retries

    async def _fail_unanswered(self) -> None:
        limits = self._host.registry.answer_limits
        if not limits:
            return
        found = await leases.unanswered(self._host.store, list(limits.items()))

        def ending(record: TaskRecord) -> tuple[TaskState, str] | None:
            if record.version != found[record.id] or record.state not in INTERRUPTED:
                return None
            return TaskState.FAILED, _UNANSWERED.format(time=in_words(limits[record.agent_id]))

        await self._end(found, ending, if_unheld=False)

    async def _end(self, ids: Iterable[str], ending: Ending, *, if_unheld: bool) -> None:
        """End tasks as `ending` says of each; None: it has moved on meanwhile. `if_unheld` spares those whose process
        is heard again."""
        if not (wanted := list(ids)):
            return
        records = (await self._host.store.load_many(wanted, history=False, artifacts=False)).values()
        endings = [(record, how) for record in records if (how := ending(record)) is not None]
        await asyncio.gather(*(end_task(self._host, record, *how, if_unheld=if_unheld) for record, how in endings))


async def sweep(host: Host) -> int:
    """One look of a process, as a job of its upkeep."""
    return await host.behaviours.sweep()


def in_words(seconds: int) -> str:
    """A time in the largest unit that divides it: `90 minutes`."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    count = seconds // size
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
