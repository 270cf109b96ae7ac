"""For executors of the a2a-sdk on this host: work handed on to its other agents, and answers that are waited for.

    from agents.delegation import delegate, wait_for_answer

    async def execute(self, context, event_queue):
        report = await delegate("weather", "Will it rain in Prague?")

Each function finds the run that it is called from, also from tasks of asyncio that `execute` has made. Outside of a run
it raises NoRunError. docs/delegation.md has the rules.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from msgspec import UNSET

from agents.runtimes.current import NoRunError, current_run
from agents.runtimes.errors import NO_ANSWER_TEXT, DelegationError, RunEndedError
from agents.runtimes.python.from_pb import read_parts, read_struct
from agents.runtimes.python.to_pb import write_message, write_task
from protocol.errors import A2AError, InvalidAgentResponseError
from protocol.ids import new_id
from protocol.model import Message, Part, Role
from protocol.requests import SendMessageRequest

__all__ = ["Answer", "DelegationError", "NoRunError", "delegate", "delegate_stream", "wait_for_answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a task that waited was answered.

    `answered_by` is the user name of who answered on the task's page, "" for the caller's own follow-up. `approved` is
    what that person said of an authorization: None for input, and for the caller, whose message says what it says.
    """

    message: pb.Message
    answered_by: str = ""
    approved: bool | None = None

    @property
    def text(self) -> str:
        """The text parts of the message, joined by newlines."""
        return "\n".join(part.text for part in self.message.parts if part.HasField("text"))


async def delegate(agent: str, message: str | pb.Message, *, extensions: Iterable[str] = ()) -> pb.Task:
    """Send a message to another agent of this host and wait until its task is terminal or interrupted.

    `agent` is a slug. A Message goes as it is, under a new messageId unless it has one; with the `task_id` of an
    earlier answer it is the next message of that task. Without a `context_id` it is in the context of the run.
    `extensions` are the URIs that the call names. Raises DelegationError.
    """
    run, _ = current_run()
    task = await run.delegations.send(run, agent, _request(message), frozenset(extensions))
    return write_task(task)


async def delegate_stream(
    agent: str, message: str | pb.Message, *, extensions: Iterable[str] = ()
) -> AsyncGenerator[pb.StreamResponse, None]:
    """The same as it happens: the Task, then its status and artifact updates up to that state."""
    run, _ = current_run()
    async with aclosing(run.delegations.stream(run, agent, _request(message), frozenset(extensions))) as events:
        async for event in events:
            yield json_format.Parse(event, pb.StreamResponse())


async def wait_for_answer() -> Answer:
    """Wait for the next message to this run's task, once INPUT_REQUIRED or AUTH_REQUIRED was reported.

    The task is WORKING when this returns. Nothing else can be reported while it waits. Raises
    InvalidAgentResponseError in any other state and when `execute` has returned, and asyncio.CancelledError when the
    task is cancelled or expires.
    """
    try:
        _, updates = current_run()
    except RunEndedError:
        raise InvalidAgentResponseError(NO_ANSWER_TEXT) from None
    answer = await updates.answer()
    message, answered = write_message(answer.message), answer.answered
    return Answer(message) if answered is None else Answer(message, answered.by, answered.approved)


def _request(message: str | pb.Message) -> SendMessageRequest:
    if isinstance(message, str):
        return SendMessageRequest(message=Message(message_id=new_id(), role=Role.USER, parts=[Part(text=message)]))
    try:
        parts = read_parts(message.parts, "message")
        metadata = read_struct(message.metadata) if message.HasField("metadata") else UNSET
    except A2AError as error:
        raise DelegationError(error.message, error.reason) from error
    return SendMessageRequest(
        message=Message(
            message_id=message.message_id or new_id(),
            role=Role.USER,
            parts=parts,
            context_id=message.context_id,
            task_id=message.task_id,
            metadata=metadata,
            extensions=list(message.extensions),
            reference_task_ids=list(message.reference_task_ids),
        )
    )
