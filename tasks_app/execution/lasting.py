"""Tasks that a process cannot do without: writers, listeners, looks. Each of them outlives what goes wrong in one turn;
one that ends all the same leaves callers waiting for ever, so the process is better off dead and started again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)


def _nothing() -> None:
    """What hosts do that share their process with others."""


class Lasting:
    """Those of one host. `broken` once one of them has ended before its time, which `on_broken` is told.

    `over` says that the host stops, and that they end.
    """

    def __init__(self) -> None:
        self.broken = False
        self.over = False
        self.on_broken: Callable[[], None] = _nothing

    def keep(self, *tasks: asyncio.Task[None]) -> None:
        """These last as long as the host, unless somebody asks them to end."""
        for task in tasks:
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self.over or task.cancelling():
            return
        error = None if task.cancelled() else task.exception()
        logger.critical("The %s ended, and the host cannot do without it", task.get_name(), exc_info=error)
        self.broken = True
        self.on_broken()
