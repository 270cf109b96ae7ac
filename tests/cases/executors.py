"""Agents that say what they should not, or in an unusual way; written for the a2a-sdk as people would."""

from __future__ import annotations

import asyncio
from pathlib import Path

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import Artifact, Part, TaskArtifactUpdateEvent


class Base(AgentExecutor):
    """Work, then what the subclass does, then COMPLETED."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.start_work()
        await self.work(updater, event_queue)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()

    async def work(self, updater: TaskUpdater, event_queue: EventQueue) -> None:
        raise NotImplementedError


class Replacing(Base):
    """Artifact X with [a], then X again, not appended, with [b]."""

    async def work(self, updater: TaskUpdater, event_queue: EventQueue) -> None:
        await updater.add_artifact([Part(text="a")], artifact_id="X")
        await updater.add_artifact([Part(text="b")], artifact_id="X", append=False)


class Reopening(Base):
    """Appends to X after X had its last chunk."""

    async def work(self, updater: TaskUpdater, event_queue: EventQueue) -> None:
        await updater.add_artifact([Part(text="a")], artifact_id="X", last_chunk=True)
        await updater.add_artifact([Part(text="b")], artifact_id="X", append=True, last_chunk=True)


class Empty(Base):
    """An artifact without parts."""

    async def work(self, updater: TaskUpdater, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(
            TaskArtifactUpdateEvent(
                task_id=updater.task_id, context_id=updater.context_id, artifact=Artifact(artifact_id="X")
            )
        )


class Silent(AgentExecutor):
    """Says nothing until it is cancelled."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await asyncio.get_running_loop().create_future()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()


class Traced(Silent):
    """Notes in the file that the message names when its code starts and stops."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        diary = Path(context.get_user_input())
        note(diary, "started")
        try:
            await super().execute(context, event_queue)
        finally:
            note(diary, "stopped")


class Lingering(Traced):
    """The same, and once it is to stop it takes until there is a file of that name with `.go` after it."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        diary = Path(context.get_user_input())
        try:
            await super().execute(context, event_queue)
        finally:
            while not diary.with_suffix(".go").exists():  # noqa: ASYNC110 another process makes it
                await asyncio.sleep(0.01)


def note(diary: Path, word: str) -> None:
    """Add a line to a file."""
    with diary.open("a") as file:
        file.write(f"{word}\n")


class Described(Base):
    """An append to an artifact that is not there, with everything that an artifact may have."""

    async def work(self, updater: TaskUpdater, event_queue: EventQueue) -> None:
        await updater.add_artifact(
            [Part(text="a", media_type="text/plain", filename="a.txt")],
            artifact_id="X",
            name="Name",
            metadata={"line": "one\ntwo", "n": 1},
            append=True,
            last_chunk=True,
        )


class Chatty(Base):
    """Asks for more, again and again."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.requires_input(updater.new_agent_message([Part(text="Say more.")]))


class Extended(Base):
    """Tells which extensions it was called with."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.start_work()
        assert context.call_context is not None
        named = sorted(context.call_context.requested_extensions)
        await updater.add_artifact([Part(text=" ".join(named))])
        await updater.complete()
