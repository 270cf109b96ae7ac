"""An agent that says more than a slow client reads."""

from __future__ import annotations

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import Part

CHUNKS = 300
CHUNK_BYTES = 100_000


class Torrent(AgentExecutor):
    """Asks to go on, and says 30 MB in chunks of a new artifact each time it is told to, until it is told to end."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        text = context.get_user_input()
        if text == "end":
            await updater.complete()
            return
        if context.current_task is not None:
            await self._pour(updater, text)
        await updater.requires_input()

    async def _pour(self, updater: TaskUpdater, name: str) -> None:
        for number in range(CHUNKS):
            await updater.add_artifact(
                [Part(text=f"{number:05}" + "x" * (CHUNK_BYTES - 5))],
                artifact_id=name,
                append=number > 0,
                last_chunk=number == CHUNKS - 1,
            )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()
