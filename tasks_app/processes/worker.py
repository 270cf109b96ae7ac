"""What a Celery worker does for tasks: one event loop in a thread of its own for all agents and webhooks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from django.conf import settings

from protocol.errors import UnavailableError
from tasks_app.content.unnamed import remove_unnamed
from tasks_app.execution.host import Host
from tasks_app.execution.sweeping import sweep
from tasks_app.processes.process import get_host, stop_host
from tasks_app.push.delivery import Deliverer

logger = logging.getLogger(__name__)

_START_SECONDS = 30
_STOP_SECONDS = settings.SHUTDOWN_GRACE_SECONDS + 5


class WorkerLoop:
    """The event loop of a worker process, and the host on it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agents", daemon=True)
        self._host: Host | None = None
        self._deliverer: Deliverer | None = None

    def start(self) -> None:
        """Start the loop and the host. Raises what the host raises."""
        self._thread.start()
        self.call(self._start()).result(_START_SECONDS)

    async def _start(self) -> None:
        self._host = host = await get_host("worker")
        self._deliverer = Deliverer(host.store, host.outbound, lambda: host.registry.signer)
        host.lasting.keep(self._deliverer.start())

    def stop(self) -> None:
        """Stop deliveries and the host, then the loop."""
        self.call(self._stop()).result(_STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=1)

    async def _stop(self) -> None:
        if self._deliverer is not None:
            await self._deliverer.stop()
        await stop_host()

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the loop; returns its `concurrent.futures.Future`."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run_tasks(self, rings: Sequence[tuple[str, int]]) -> None:
        """Claim and run what a doorbell names. Returns at once: the claim in the row, not the message, is the work."""
        self._loop.call_soon_threadsafe(self._take, rings)

    def _take(self, rings: Sequence[tuple[str, int]]) -> None:
        for task_id, attempt in rings:
            if self._host is not None:
                self._host.behaviours.take_queued(task_id, attempt)

    def deliver_push(self, task_ids: list[str]) -> None:
        """Tell the webhooks of tasks what they have not had yet. Returns at once."""
        self.call(self._deliver_push(task_ids))

    async def _deliver_push(self, task_ids: list[str]) -> None:
        try:
            if self._deliverer is not None:
                await self._deliverer.deliver(task_ids)
        except Exception:
            logger.exception("Webhooks of %d tasks have to wait for the sweep", len(task_ids))

    def remove_unnamed_files(self) -> None:
        """Delete files that no task names. Returns at once."""
        self.call(self._remove_unnamed_files())

    async def _remove_unnamed_files(self) -> None:
        try:
            await remove_unnamed((await get_host()).store)
        except UnavailableError as error:
            logger.warning("Files that no task names wait to be deleted: %s", error.message)
        except Exception:
            logger.exception("Files that no task names could not be deleted")

    def sweep(self) -> int:
        """Look for abandoned tasks, once. Returns how many were looked at."""

        async def look() -> int:
            return await sweep(await get_host())

        found: int = self.call(look()).result(_START_SECONDS)
        return found
