"""What a task has delegated ends with it: the unfinished children of a task that ended without a result are cancelled.

A COMPLETED task may leave work behind on purpose. Each child's own end cancels its children in turn, in whichever
process it is stored. Nobody who dies on the way leaves anything behind: a job of the upkeep looks for unfinished
children of such parents.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from protocol.errors import A2AError, TaskNotCancelableError
from protocol.states import FRUITLESS, INTERRUPTED, RUNNING
from tasks_app.execution.cancelling import cancel_record

if TYPE_CHECKING:
    from tasks_app.host import Host

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_UNFINISHED = ", ".join(str(n) for n in sorted(s.number for s in RUNNING | INTERRUPTED))
# Both use the index task_open_child, which holds unfinished children only.
_CHILDREN = f"""SELECT id FROM tasks_app_task
    WHERE parent_id IS NOT NULL AND parent_id = ANY(%s) AND state IN ({_UNFINISHED}) ORDER BY id LIMIT {_AT_ONCE}"""
_ORPHANS = f"""SELECT c.id FROM tasks_app_task c JOIN tasks_app_task p ON p.id = c.parent_id
    WHERE c.parent_id IS NOT NULL AND c.state IN ({_UNFINISHED})
    AND p.state IN ({", ".join(str(s.number) for s in sorted(FRUITLESS))}) ORDER BY c.id LIMIT {_AT_ONCE}"""


async def cancel_children(host: Host, parent_ids: Sequence[str]) -> None:
    """Cancel the unfinished children of tasks that ended without a result."""
    await _cancel_all(host, [row[0] for row in await host.store.query(_CHILDREN, [list(parent_ids)])])


async def cancel_orphans(host: Host) -> None:
    """Do so for all tasks: what was left by a process that died, and children that were made at the last moment."""
    await _cancel_all(host, [row[0] for row in await host.store.query(_ORPHANS, [])])


async def _cancel_all(host: Host, ids: Sequence[str]) -> None:
    await asyncio.gather(*(_cancel(host, task_id) for task_id in ids))


async def _cancel(host: Host, task_id: str) -> None:
    record = await host.store.load(task_id)
    try:
        if record is not None:
            await cancel_record(host, record)
    except TaskNotCancelableError:
        return  # It has ended meanwhile.
    except A2AError as error:
        logger.warning("Task %s is still to be cancelled with its parent: %s", task_id, type(error).__name__)
