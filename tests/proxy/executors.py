"""An agent that says more than slow readers read."""

from __future__ import annotations

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import Part

CHUNKS = 2000
CHUNK_BYTES = 16_000


class Flood(AgentExecutor):
    """Asks to go on, then says 32 MB in chunks of one artifact."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        if context.current_task is None:
            await updater.requires_input()
            return
        for number in range(CHUNKS):
            part = Part(text=f"{number:05}" + "x" * (CHUNK_BYTES - 5))
            await updater.add_artifact([part], artifact_id="all", append=number > 0, last_chunk=number == CHUNKS - 1)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()
