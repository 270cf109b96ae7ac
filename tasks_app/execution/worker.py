"""What a Celery worker does for tasks: one event loop in a thread of its own for all agents and webhooks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from agents.runtimes.base import Caller
from protocol.states import RUNNING
from tasks_app.execution.cascade import cancel_orphans
from tasks_app.execution.draft import TaskDraft
from tasks_app.execution.execution import Execution
from tasks_app.execution.turn import message_of, turn_of
from tasks_app.execution.upkeep import sweep
from tasks_app.host import Host
from tasks_app.process import get_host, stop_host
from tasks_app.push.delivery import Delivery

logger = logging.getLogger(__name__)

_RUNS_AT_ONCE = 500
_START_SECONDS = 30
_STOP_SECONDS = 8


class WorkerLoop:
    """The event loop of a worker process, and the host on it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agents", daemon=True)
        self._places = asyncio.Semaphore(_RUNS_AT_ONCE)
        self._delivery: Delivery | None = None

    def start(self) -> None:
        """Start the loop and the host. Raises what the host raises."""
        self._thread.start()
        self.call(self._start()).result(_START_SECONDS)

    async def _start(self) -> None:
        host = await get_host("worker")
        self._delivery = Delivery(host.store, host.outbound, lambda: host.registry.signer)
        self._delivery.start()

    def stop(self) -> None:
        """Stop deliveries and the host, then the loop."""
        self.call(self._stop()).result(_STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=1)

    async def _stop(self) -> None:
        if self._delivery is not None:
            await self._delivery.stop()
        await stop_host()

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the loop; returns its `concurrent.futures.Future`."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run_tasks(self, rings: Sequence[tuple[str, int]]) -> None:
        """Claim and run what a doorbell names. Returns at once: the claim in the row, not the message, is the work."""
        for task_id, attempt in rings:
            self.call(self._run_task(task_id, attempt))

    def deliver_push(self, task_ids: list[str]) -> None:
        """Tell the webhooks of tasks what they have not had yet. Returns at once."""
        self.call(self._deliver_push(task_ids))

    async def _deliver_push(self, task_ids: list[str]) -> None:
        try:
            if self._delivery is not None:
                await self._delivery.deliver(task_ids)
        except Exception:
            logger.exception("Webhooks of %d tasks have to wait for the sweep", len(task_ids))

    def sweep(self) -> int:
        """Look for abandoned tasks, once. Returns how many were looked at."""

        async def look() -> int:
            host = await get_host()
            found = await sweep(host)
            await cancel_orphans(host)
            return found

        found: int = self.call(look()).result(_START_SECONDS)
        return found

    async def _run_task(self, task_id: str, attempt: int) -> None:
        try:
            async with self._places:
                execution = await claim_task(await get_host(), task_id, attempt)
                if execution is not None:
                    await execution.settled()
        except Exception:
            logger.exception("Task %s could not be started; the sweep rings again", task_id)


async def claim_task(host: Host, task_id: str, attempt: int) -> Execution | None:
    """Take a queued task and start it here; None if it is not queued under this attempt any more."""
    record = await host.store.load(task_id)
    if record is None or record.attempt != attempt or record.worker is not None or record.state not in RUNNING:
        return None
    entry = host.registry.by_id(record.agent_id)
    if entry is None or not await host.journal.submit(TaskDraft(record).change(record, host.origin)):
        return None
    record = replace(record.copy(), version=record.version + 1, worker=host.origin)  # What was read is shared.
    turn = turn_of(record)
    caller = Caller(record.owner, authenticated=turn.authenticated)
    request, extensions = turn.request(message_of(record)), frozenset(turn.extensions)
    execution = host.execute(entry, record, request, caller, extensions, turn.answered)
    execution.acknowledged = turn.acknowledged
    return execution
