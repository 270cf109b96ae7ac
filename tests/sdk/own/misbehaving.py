"""An executor that sends what the specification does not allow."""

from __future__ import annotations

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

WORKING = TaskStatus(state=TaskState.TASK_STATE_WORKING)


class Misbehaving(AgentExecutor):
    """Starts to work, sends the event that the message names, and completes as if nothing had been."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task, own = str(context.task_id), str(context.context_id)
        updater = TaskUpdater(event_queue, task, own)
        await updater.start_work()
        events = {
            "another task": TaskStatusUpdateEvent(task_id="another", context_id=own, status=WORKING),
            "another context": TaskStatusUpdateEvent(task_id=task, context_id="another", status=WORKING),
            "a second task": Task(id="second", context_id=own, status=WORKING),
            "an empty artifact": TaskArtifactUpdateEvent(
                task_id=task, context_id=own, artifact=Artifact(artifact_id="empty")
            ),
            "a message after all": Message(message_id="late", role=Role.ROLE_AGENT, parts=[Part(text="late")]),
            "no state": TaskStatusUpdateEvent(task_id=task, context_id=own, status=TaskStatus()),
        }
        if event := events.get(context.get_user_input()):
            await event_queue.enqueue_event(event)
        if context.get_user_input() != "no end":
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError
