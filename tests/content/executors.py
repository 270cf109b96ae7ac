"""Agents that are given big parts and say big things; written for the a2a-sdk as people would."""

from __future__ import annotations

import asyncio
import hashlib

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import Message, Part, Role


def digest(part: Part) -> str:
    """What an agent was given: kind, size and the beginning of the SHA-256."""
    kind = part.WhichOneof("content") or ""
    content = {"raw": part.raw, "text": part.text.encode(), "url": part.url.encode(), "data": b""}[kind]
    if kind == "data":
        content = str(len(part.data.struct_value.fields)).encode()
    return f"{kind} {len(content)} {hashlib.sha256(content).hexdigest()[:8]}"


class Base(AgentExecutor):
    """Work, then COMPLETED."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.start_work()
        await self.work(context, updater)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        raise NotImplementedError


class Mirror(Base):
    """Gives the parts of the message back as an artifact, and says what they were in its last message."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        assert context.message is not None
        parts = list(context.message.parts)
        await updater.add_artifact(parts, artifact_id="mirror", name="mirror")
        said = [Part(text=digest(part)) for part in parts]
        await updater.complete(updater.new_agent_message(said))


class Idle(Base):
    """Works until it is cancelled."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        await asyncio.Event().wait()


class Chunks(Base):
    """Says 5,000 letters in the first chunk of an artifact, three in the second, 6,000 in the last."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        for number, part in enumerate((Part(text="a" * 5000), Part(text="bbb"), Part(raw=b"c" * 6000))):
            await updater.add_artifact([part], artifact_id="story", append=number > 0, last_chunk=number == 2)
        await updater.complete()


class Asking(Base):
    """Asks, big; the second turn says what it was given of the first."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        task = context.current_task
        if task is None:
            await updater.requires_input(updater.new_agent_message([Part(text="?" * 5000)]))
            return
        said = [digest(part) for message in task.history for part in message.parts]
        await updater.complete(updater.new_agent_message([Part(text="; ".join(said))]))


class Answering(Base):
    """Answers with a big Message and no task."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = Message(message_id="big", role=Role.ROLE_AGENT, parts=[Part(text="m" * 7000)])
        await event_queue.enqueue_event(message)


class Flooding(Base):
    """Says 10,000 bytes a dozen times; it does not care that it is told to stop."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        for number in range(12):
            try:
                await updater.add_artifact([Part(raw=bytes([number]) * 10_000)], artifact_id=f"wave-{number}")
            except Exception:
                continue
        await updater.complete()
