"""Agents that harm their process: they block it, or break what it cannot do without."""

from __future__ import annotations

import time

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater

from tasks_app.processes import process


class Blocking(AgentExecutor):
    """Works without giving up the event loop of its process, for as many seconds as the message says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.start_work()
        time.sleep(float(context.get_user_input()))  # noqa: ASYNC251
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class Saboteur(AgentExecutor):
    """Ends the journal of its process, as a mistake in the host would."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        host = process._current
        assert host is not None
        host.journal._published = lambda writes: writes[-1]._no_such_field  # type: ignore[union-attr]
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError
