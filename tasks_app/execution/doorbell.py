"""Telling workers that tasks wait for them, to be run or to be told of to webhooks. The message carries ids only: a
worker claims the row or walks away, so a lost, doubled or late message does no harm, and the sweep finds what waits.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence

from celery import current_app

logger = logging.getLogger(__name__)

Ring = tuple[str, int]
RUN_TASKS = "tasks_app.run_tasks"
DELIVER_PUSH = "tasks_app.deliver_push"
_AT_ONCE = 16  # ids in one message: few round trips under load, yet spread over workers


class Doorbell:
    """Publishes from a thread of its own: a broker call blocks for milliseconds and must not stop the event loop."""

    def __init__(self) -> None:
        self._rings: queue.SimpleQueue[Ring | str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._publish_forever, name="doorbell", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self) -> None:
        """Publish what is waiting, for at most a second."""
        self._rings.put(None)
        self._thread.join(timeout=1)

    def ring(self, task_id: str, attempt: int) -> None:
        """Ask for a worker to run a task, without waiting."""
        self._rings.put((task_id, attempt))

    def ring_for_push(self, task_id: str) -> None:
        """Ask for a worker to tell the webhooks of a task its news, without waiting."""
        self._rings.put(task_id)

    def _publish_forever(self) -> None:
        while (first := self._rings.get()) is not None:
            batch: list[Ring | str] = [first]
            while len(batch) < _AT_ONCE and not self._rings.empty():
                ring = self._rings.get()
                if ring is None:
                    self._publish(batch)
                    return
                batch.append(ring)
            self._publish(batch)

    def _publish(self, batch: list[Ring | str]) -> None:
        runs = [ring for ring in batch if not isinstance(ring, str)]
        pushes = list(dict.fromkeys(ring for ring in batch if isinstance(ring, str)))
        for name, rings in ((RUN_TASKS, runs), (DELIVER_PUSH, pushes)):
            if rings:
                self._send(name, rings)

    def _send(self, name: str, rings: Sequence[Ring | str]) -> None:
        try:
            current_app.send_task(name, [rings], retry=False)
        except Exception as error:
            # The rows say what is to be done; the sweep finds them.
            logger.warning("The broker did not take %d doorbells: %s", len(rings), type(error).__name__)
