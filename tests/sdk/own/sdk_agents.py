"""Executors as people keep them in their AGENTS_DIR: they know the a2a-sdk and nothing of the host."""

from __future__ import annotations

import asyncio

from a2a.helpers import get_artifact_text, get_message_text, new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Message, Part, Role


def updater_of(context: RequestContext, event_queue: EventQueue) -> TaskUpdater:
    assert context.task_id
    assert context.context_id
    return TaskUpdater(event_queue, context.task_id, context.context_id)


class Base(AgentExecutor):
    """What all of them do alike when they are cancelled."""

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = updater_of(context, event_queue)
        await updater.cancel(updater.new_agent_message([Part(text="Stopped.")]))


class Speller(Base):
    """Streams the words of the message as chunks of one artifact."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = updater_of(context, event_queue)
        await updater.start_work(updater.new_agent_message([Part(text="Spelling.")]))
        words = context.get_user_input().split()
        for number, word in enumerate(words, start=1):
            await updater.add_artifact(
                [Part(text=word, media_type="text/plain")],
                artifact_id="words",
                name="Words",
                append=number > 1,
                last_chunk=number == len(words),
            )
        await updater.complete()


class Shouter(Speller):
    """One artifact with the message in capitals."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = updater_of(context, event_queue)
        await updater.add_artifact([Part(text=context.get_user_input().upper())], artifact_id="words")
        await updater.complete()


class Messenger(Base):
    """Answers with a Message and no task."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        parts = [Part(text=f"You said: {context.get_user_input()}")]
        await event_queue.enqueue_event(
            Message(
                message_id=f"re-{context.task_id}", role=Role.ROLE_AGENT, parts=parts, context_id=context.context_id
            )
        )


class Interviewer(Base):
    """Asks twice, then quotes all that the caller said, and the artifacts of the tasks that the caller refers to."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = updater_of(context, event_queue)
        await updater.start_work()
        history = list(context.current_task.history) if context.current_task else []
        said = [get_message_text(message) for message in history if message.role == Role.ROLE_USER]
        if len(said) < 3:
            question = f"Question {max(len(said), 1)}?"
            await updater.requires_input(updater.new_agent_message([Part(text=question)]))
            return
        related = [get_artifact_text(artifact) for task in context.related_tasks for artifact in task.artifacts]
        await updater.add_artifact([Part(text=" / ".join(said))], artifact_id="said")
        await updater.add_artifact([Part(text=" / ".join(related) or "nothing")], artifact_id="related")
        await updater.complete()


class Broken(Base):
    """Raises after its first chunk, with a text that is nobody's business."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = updater_of(context, event_queue)
        await updater.start_work()
        await updater.add_artifact([Part(text="so far")], artifact_id="half")
        raise RuntimeError("password=hunter2")


class Waiter(Base):
    """Works until it is cancelled."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await updater_of(context, event_queue).start_work()
        await asyncio.Event().wait()
