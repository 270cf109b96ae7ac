"""An agent whose log is long when others join: AGENTS_DIR of the host under measurement is this folder."""

from __future__ import annotations

import asyncio

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Part

PAUSE = 0.01
"""Seconds between two chunks after the past ones."""


class Marathon(AgentExecutor):
    """As many chunks at once as the message says, then one after the other until it is cancelled."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message
        assert context.task_id
        assert context.context_id
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        await task.start_work()
        past = int(context.get_user_input())
        number = 0
        while True:
            await task.add_artifact([Part(text=f"mile {number}\n")], artifact_id="miles", append=number > 0)
            number += 1
            if number >= past:
                await asyncio.sleep(PAUSE)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id
        assert context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
