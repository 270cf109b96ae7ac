"""When a task will probably be done, from what its agent took before. Never on the way of a message."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from weakref import WeakKeyDictionary

from protocol.errors import UnavailableError
from protocol.states import TaskState
from tasks_app.execution.host import Host
from tasks_app.operations.call import Call

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 60.0
"""How long a duration is used before it is read again."""

# Bounded, however many tasks there are: the newest ones of some callers. Index: task_list_state.
_MEDIAN = f"""SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t.status_at - t.created_at)
    FROM (SELECT DISTINCT owner FROM tasks_app_taskcount WHERE agent_id = %s AND state = {TaskState.COMPLETED.number}
        LIMIT 50) o
    CROSS JOIN LATERAL (SELECT status_at, created_at FROM tasks_app_task
        WHERE agent_id = %s AND owner = o.owner AND state = {TaskState.COMPLETED.number}
        ORDER BY status_at DESC, id DESC LIMIT 50) t"""


@dataclass(slots=True)
class _Known:
    duration: timedelta
    read_at: float


_known: WeakKeyDictionary[Host, dict[int, _Known]] = WeakKeyDictionary()


async def usual_duration(call: Call) -> timedelta | None:
    """The median time from creation to COMPLETED of the agent's newest tasks; None if it has completed none, or if the
    database cannot say: nobody's call fails for want of it.

    From memory once it is known; an old value is used while a new one is being read.
    """
    known = _known.setdefault(call.host, {}).get(call.entry.id)
    if known is None:
        return await _read(call.host, call.entry.id)
    if asyncio.get_running_loop().time() - known.read_at > REFRESH_SECONDS:
        known.read_at = asyncio.get_running_loop().time()
        call.host.spawn(_read(call.host, call.entry.id))
    return known.duration


async def _read(host: Host, agent_id: int) -> timedelta | None:
    try:
        duration: timedelta | None = (await host.store.query(_MEDIAN, [agent_id, agent_id]))[0][0]
    except UnavailableError:
        logger.warning("The usual duration of an agent could not be read; the next call tries again")
        return None
    if duration is not None:
        _known.setdefault(host, {})[agent_id] = _Known(duration, asyncio.get_running_loop().time())
    return duration
