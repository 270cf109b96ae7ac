"""Executors as people write them for the a2a-sdk, and modules that fail in every way."""

from __future__ import annotations

import sys

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import Part, Task, TaskState, TaskStatus


class Greeter(AgentExecutor):
    """The shape of the SDK's samples: a Task for new ones, then an updater."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.contexts.append(context)
        task_id, context_id = str(context.task_id), str(context.context_id)
        if context.current_task is None:
            submitted = Task(
                id=task_id,
                context_id=context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[context.message],
            )
            await event_queue.enqueue_event(submitted)
        updater = TaskUpdater(event_queue, task_id, context_id)
        await updater.start_work()
        if context.current_task is None:
            question = updater.new_agent_message([Part(text="Who are you?")])
            await updater.requires_input(question)
            return
        await updater.add_artifact([Part(text="Hello, ")], artifact_id="greeting", name="greeting")
        await updater.add_artifact(
            [Part(text=context.get_user_input())], artifact_id="greeting", append=True, last_chunk=True
        )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.contexts.append(context)
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.cancel(updater.new_agent_message([Part(text="Stopped.")]))


class Exits(AgentExecutor):
    """Code that was a script once."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        sys.exit(3)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        sys.exit(4)


class NeedsArguments(Exits):
    """Cannot be made by the host."""

    def __init__(self, model: str) -> None:
        self.model = model


class NeedsEnvironment(Exits):
    """Says at once what it misses."""

    def __init__(self) -> None:
        raise KeyError("MODEL_KEY")


class ExitsOnConstruction(Exits):
    """Leaves the process when it is made."""

    def __init__(self) -> None:
        sys.exit("no model")


class WithoutCancel(AgentExecutor):
    """Half an executor."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do nothing."""


class Repeatable(Greeter):
    """A lost run of it may be repeated."""

    repeatable = True
