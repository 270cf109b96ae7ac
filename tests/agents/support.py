"""A run without a host: what a runtime is given, and a list of what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from agents.runtimes.base import Answer, Answered, Caller, Run
from protocol.model import Artifact, Message, Part, Role, Task
from protocol.requests import SendMessageRequest
from protocol.states import TaskState

TASK = "0199c8f0-0000-7000-8000-000000000001"
CONTEXT = "context-1"


@dataclass
class Recorder:
    """`Updates` that keeps every call as a tuple: (state, text) or (artifact id, texts, append, last_chunk)."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    metadata: list[bytes] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    async def status(self, state: TaskState, message: Message | None = None, metadata: Raw | UnsetType = UNSET) -> None:
        self.calls.append((state, texts(message.parts)[0]) if message else (state,))
        if message:
            self.messages.append(message)
        self._note(metadata)

    async def artifact(
        self,
        artifact: Artifact,
        *,
        append: bool = False,
        last_chunk: bool = False,
        metadata: Raw | UnsetType = UNSET,
    ) -> None:
        self.calls.append((artifact.artifact_id, texts(artifact.parts), append, last_chunk))
        self.artifacts.append(artifact)
        self._note(metadata)

    async def reply(self, message: Message) -> None:
        self.calls.append(("reply", *texts(message.parts)))
        self.messages.append(message)

    async def answer(self) -> Answer:
        self.calls.append(("answer",))
        return self.answers.pop(0)

    def _note(self, metadata: Raw | UnsetType) -> None:
        if not isinstance(metadata, UnsetType):
            self.metadata.append(bytes(metadata))


def texts(parts: Sequence[Part]) -> list[str]:
    """The texts of text parts."""
    return [part.text for part in parts if isinstance(part.text, str)]


def make_message(*parts: Part | str, message_id: str = "m-1", role: Role = Role.USER, **fields: Any) -> Message:
    """A message in the task and context of these tests; a str is a text part."""
    return Message(
        message_id=message_id,
        role=role,
        parts=[Part(text=part) if isinstance(part, str) else part for part in parts],
        task_id=TASK,
        context_id=CONTEXT,
        **fields,
    )


def make_run(
    *parts: Part | str,
    task: Task | None = None,
    caller: Caller | None = None,
    related: Sequence[Task] = (),
    message: Message | None = None,
    extensions: frozenset[str] = frozenset(),
    delegations: Any = None,
    answered: Answered | None = None,
    **request: Any,
) -> Run:
    """A run for a message of these parts."""

    async def load_related() -> list[Task]:
        return list(related)

    return Run(
        agent_slug="agent",
        task_id=TASK,
        context_id=CONTEXT,
        request=SendMessageRequest(message=message or make_message(*parts), **request),
        caller=caller or Caller("alice", authenticated=True),
        task=task,
        load_related=load_related,
        delegations=delegations,
        extensions=extensions,
        answered=answered,
    )
