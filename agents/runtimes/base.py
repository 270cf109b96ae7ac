"""What runs behind an agent, and what the host gives it. Beside it stands one module or package per kind of agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import UNSET, Raw, UnsetType

from protocol.model import Artifact, Message, Task
from protocol.requests import SendMessageRequest
from protocol.states import TaskState


@dataclass(slots=True)
class Caller:
    """Who sent the message. `owner` is the principal that tasks belong to; `groups` are those of its key."""

    owner: str
    authenticated: bool = False
    groups: frozenset[str] = frozenset()


@dataclass(slots=True)
class Run:
    """One execution of one task: the newest message and what came before it.

    `task` is None for the first message of a new task, else the task as it was when the message came, with history.
    `load_related` reads the tasks named in `referenceTaskIds` that the caller may see.
    """

    agent_slug: str
    task_id: str
    context_id: str
    request: SendMessageRequest
    caller: Caller
    task: Task | None
    load_related: Callable[[], Awaitable[list[Task]]]
    extensions: frozenset[str] = field(default_factory=frozenset)

    @property
    def message(self) -> Message:
        """The message of this turn, with its taskId and contextId."""
        return self.request.message

    @property
    def text(self) -> str:
        """The text parts of the message, joined by newlines."""
        return "\n".join(p.text for p in self.message.parts if p.text is not UNSET)


class Updates(Protocol):
    """Where a runtime reports. Calls return once the update is accepted, before it is stored; they wait only when
    the store falls far behind. Each raises `InvalidAgentResponseError` for an update that the state machine or the
    data model forbids, and `asyncio.CancelledError` once the run was fenced off.
    """

    async def status(self, state: TaskState, message: Message | None = None, metadata: Raw | UnsetType = UNSET) -> None:
        """Move the task to `state`."""

    async def artifact(
        self,
        artifact: Artifact,
        *,
        append: bool = False,
        last_chunk: bool = False,
        metadata: Raw | UnsetType = UNSET,
    ) -> None:
        """Add or replace an artifact, or append parts to it (§4.2.2)."""

    async def reply(self, message: Message) -> None:
        """Answer with a Message and no task (§3.1.1). Must be the only update of the run."""


class Runtime(Protocol):
    """Agent code. One instance serves all runs of an agent in a process, concurrently."""

    async def execute(self, run: Run, updates: Updates) -> None:
        """Do the work. Returns after a terminal or interrupted state; any exception FAILS the task."""

    async def cancel(self, run: Run, updates: Updates) -> None:
        """Called after `execute` was cancelled, to clean up and report CANCELED. The host does so if this does not."""
