"""Telling workers that tasks wait for them. The message carries ids only: a worker claims the row or walks away, so a
lost, doubled or late message does no harm, and the sweep rings again for rows that nobody claimed.
"""

from __future__ import annotations

import logging
import queue
import threading

from celery import current_app

logger = logging.getLogger(__name__)

Ring = tuple[str, int]
RUN_TASKS = "tasks_app.run_tasks"
_AT_ONCE = 16  # ids in one message: few round trips under load, yet spread over workers


class Doorbell:
    """Publishes from a thread of its own: a broker call blocks for milliseconds and must not stop the event loop."""

    def __init__(self) -> None:
        self._rings: queue.SimpleQueue[Ring | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._publish_forever, name="doorbell", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self) -> None:
        """Publish what is waiting, for at most a second."""
        self._rings.put(None)
        self._thread.join(timeout=1)

    def ring(self, task_id: str, attempt: int) -> None:
        """Ask for a worker, without waiting."""
        self._rings.put((task_id, attempt))

    def _publish_forever(self) -> None:
        while (first := self._rings.get()) is not None:
            batch = [first]
            while len(batch) < _AT_ONCE and not self._rings.empty():
                ring = self._rings.get()
                if ring is None:
                    self._publish(batch)
                    return
                batch.append(ring)
            self._publish(batch)

    def _publish(self, batch: list[Ring]) -> None:
        try:
            current_app.send_task(RUN_TASKS, [batch], retry=False)
        except Exception as error:
            # The rows say what is to be done; the sweep rings again.
            logger.warning("The broker did not take %d doorbells: %s", len(batch), type(error).__name__)
