"""What a task has delegated ends with it: the unfinished children of a task that ended without a result are cancelled.

A COMPLETED task may leave work behind on purpose. Each child's own end cancels its children in turn, in whichever
process it is stored. Nobody who dies on the way leaves anything behind: a job of the upkeep looks for unfinished
children of such parents. Nobody waits for a child that does not listen to its cancel.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protocol.errors import A2AError, TaskNotCancelableError
from protocol.states import FRUITLESS, INTERRUPTED, RUNNING
from tasks_app.execution.cancelling import cancel_record

if TYPE_CHECKING:
    from tasks_app.execution.host import Host

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_UNDER_WAY = 1000
"""Cancels of one process at a time. They share a few connections, so it may be more than are likely to be deaf."""
_UNFINISHED = ", ".join(str(n) for n in sorted(s.number for s in RUNNING | INTERRUPTED))
# Both use the index task_open_child, which holds unfinished children only.
_CHILDREN = f"""SELECT id FROM tasks_app_task
    WHERE parent_id IS NOT NULL AND parent_id = ANY(%s) AND state IN ({_UNFINISHED}) ORDER BY id LIMIT {_AT_ONCE}"""
_ORPHANS = f"""SELECT c.id FROM tasks_app_task c JOIN tasks_app_task p ON p.id = c.parent_id
    WHERE c.parent_id IS NOT NULL AND c.state IN ({_UNFINISHED}) AND c.id <> ALL(%s)
    AND p.state IN ({", ".join(str(s.number) for s in sorted(FRUITLESS))}) ORDER BY c.id LIMIT {_AT_ONCE}"""


class Cascade:
    """The cancels of one process: in the background, each child once at a time, and not too many. What finds no room
    is found by the next look."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._under_way: set[str] = set()

    async def cancel_children(self, parent_ids: Sequence[str]) -> None:
        """Begin to cancel the unfinished children of tasks that ended without a result."""
        self._begin(await self._host.store.query(_CHILDREN, [list(parent_ids)]))

    async def cancel_orphans(self) -> None:
        """Do so for all tasks: what was left by a process that died, and children that were made at the last moment."""
        self._begin(await self._host.store.query(_ORPHANS, [list(self._under_way)]))

    def _begin(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for (task_id,) in rows:
            if task_id not in self._under_way and len(self._under_way) < _UNDER_WAY:
                self._under_way.add(task_id)
                self._host.spawn(self._cancel(task_id))

    async def _cancel(self, task_id: str) -> None:
        try:
            record = await self._host.store.load(task_id)
            if record is not None:
                await cancel_record(self._host, record)
        except TaskNotCancelableError:
            return  # It has ended meanwhile.
        except A2AError as error:
            logger.warning("Task %s is still to be cancelled with its parent: %s", task_id, type(error).__name__)
        finally:
            self._under_way.discard(task_id)


async def cancel_orphans(host: Host) -> None:
    """One look of a process, as a job of its upkeep."""
    await host.behaviours.cancel_orphans()
