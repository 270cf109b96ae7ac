"""Agents that block their process, for tests of the heartbeat."""

from __future__ import annotations

import time

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater


class Blocking(AgentExecutor):
    """Works without giving up the event loop of its process, for as many seconds as the message says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.start_work()
        time.sleep(float(context.get_user_input()))  # noqa: ASYNC251
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError
