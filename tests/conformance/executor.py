"""The agent that the official test kits talk to: what it does follows from the `messageId`, as their scenarios ask.

The kits have no other way to say which behaviour a test needs. Nothing here is about the protocol: what a task, a
stream or an error is comes from the host, so the kits judge the host.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from a2a.helpers import new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import Part

STREAMING_TIMEOUT = float(os.environ.get("TCK_STREAMING_TIMEOUT", "2.0"))
"""Seconds. The kits read the same variable; a task that a test subscribes to has to live for twice as long."""

Behaviour = Callable[[TaskUpdater], Awaitable[None]]


def file_part() -> Part:
    """A small text file, inline."""
    return Part(raw=b"tck", filename="output.txt", media_type="text/plain")


def linked_file_part() -> Part:
    """The same by its URL."""
    return Part(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain")


async def complete(updater: TaskUpdater) -> None:
    """COMPLETED, with a message."""
    await updater.complete(updater.new_agent_message([new_text_part("Hello from TCK")]))


async def complete_silently(updater: TaskUpdater) -> None:
    """COMPLETED and nothing else."""
    await updater.complete()


async def ask(updater: TaskUpdater) -> None:
    """INPUT_REQUIRED: a task that can be cancelled or continued."""
    await updater.requires_input()


async def reject(updater: TaskUpdater) -> None:
    """REJECTED, with a reason."""
    await updater.reject(updater.new_agent_message([new_text_part("rejected")]))


async def answer_directly(updater: TaskUpdater) -> None:
    """A Message, no task (§3.1.1)."""
    await updater.event_queue.enqueue_event(updater.new_agent_message([new_text_part("Direct message response")]))


async def work_for_long(updater: TaskUpdater) -> None:
    """WORKING for twice the timeout of the kits, then COMPLETED."""
    await updater.start_work()
    await asyncio.sleep(2 * STREAMING_TIMEOUT)
    await updater.complete()


async def stream_chunks(updater: TaskUpdater) -> None:
    """One artifact in two chunks."""
    await updater.start_work()
    await updater.add_artifact([new_text_part("chunk-1 ")], artifact_id="chunked", append=False, last_chunk=False)
    await updater.add_artifact([new_text_part("chunk-2")], artifact_id="chunked", append=True, last_chunk=True)
    await updater.complete()


def give(part: Part) -> Behaviour:
    """An artifact with this part, then COMPLETED."""

    async def behave(updater: TaskUpdater) -> None:
        await updater.add_artifact([part])
        await updater.complete()

    return behave


def stream(part: Part) -> Behaviour:
    """WORKING, an artifact with this part, COMPLETED."""

    async def behave(updater: TaskUpdater) -> None:
        await updater.start_work()
        await give(part)(updater)

    return behave


BEHAVIOURS: dict[str, Behaviour] = {
    "tck-complete-task": complete,
    "tck-artifact-text": give(new_text_part("Generated text content")),
    "tck-artifact-file": give(file_part()),
    "tck-artifact-file-url": give(linked_file_part()),
    "tck-artifact-data": give(new_data_part({"key": "value", "count": 42})),
    "tck-message-response": answer_directly,
    "tck-input-required": ask,
    "tck-reject-task": reject,
    "tck-stream-001": stream(new_text_part("Stream hello from TCK")),
    "tck-stream-002": complete_silently,
    "tck-stream-003": stream(new_text_part("Stream task lifecycle")),
    "tck-stream-ordering-001": stream(new_text_part("Ordered output")),
    "tck-stream-artifact-text": stream(new_text_part("Streamed text content")),
    "tck-stream-artifact-file": stream(file_part()),
    "tck-stream-artifact-chunked": stream_chunks,
    "test-resubscribe-message-id": work_for_long,
}
"""By prefix of the `messageId`; the longest one counts."""
OF_KIT_0_3 = "-message-"
"""Is in the ids of the kit for 0.3. Its tests continue or cancel whatever task they were given."""


def behaviour_of(message_id: str) -> Behaviour:
    """What the agent does with a message: `complete`, unless a kit wants something else."""
    prefix = max((p for p in BEHAVIOURS if message_id.startswith(p)), key=len, default=None)
    if prefix is None:
        return ask if OF_KIT_0_3 in message_id else complete
    return BEHAVIOURS[prefix]


class KitAgent(AgentExecutor):
    """Does what the official test kits expect of the agent that they test."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """What the `messageId` asks for."""
        assert context.message is not None
        await behaviour_of(context.message.message_id)(updater_of(context, event_queue))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """CANCELED."""
        await updater_of(context, event_queue).cancel()


def updater_of(context: RequestContext, event_queue: EventQueue) -> TaskUpdater:
    """Of the task that the context is about."""
    return TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
