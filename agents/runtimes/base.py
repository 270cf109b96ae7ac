"""What runs behind an agent, and what the host gives it. Beside it stands one module or package per kind of agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
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


@dataclass(frozen=True, slots=True)
class Answered:
    """Who answered a waiting task at the host itself, on its page, instead of the caller.

    `approved` is what they said of an authorization; None: they gave input. The host vouches for both.
    """

    by: str
    approved: bool | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The next message to a task that waited. `answered` None: it came from the caller, like any follow-up."""

    message: Message
    answered: Answered | None = None


@dataclass(slots=True)
class Run:
    """One execution of one task: the newest message and what came before it.

    `task` is None for the first message of a new task, else the task as it was when the message came, with history.
    `load_related` reads the tasks named in `referenceTaskIds` that the caller may see. `delegations` sends messages to
    other agents of the host for this task. `answered` is set when the message came from a person at the host.
    """

    agent_slug: str
    task_id: str
    context_id: str
    request: SendMessageRequest
    caller: Caller
    task: Task | None
    load_related: Callable[[], Awaitable[list[Task]]]
    delegations: Delegations
    attempt: int = 1
    extensions: frozenset[str] = field(default_factory=frozenset)
    answered: Answered | None = None

    @property
    def message(self) -> Message:
        """The message of this turn, with its taskId and contextId."""
        return self.request.message

    @property
    def text(self) -> str:
        """The text parts of the message, joined by newlines."""
        return "\n".join(p.text for p in self.message.parts if p.text is not UNSET)


class Delegations(Protocol):
    """Other agents of this host, for the task of a run. The new task belongs to the same principal, whose rights
    decide, and its parent is the run's task. Everything raises DelegationError.
    """

    async def send(
        self, run: Run, agent: str, request: SendMessageRequest, extensions: frozenset[str] = frozenset()
    ) -> Task:
        """Send a message to the agent with this slug, and wait until its task is terminal or interrupted."""

    def stream(
        self, run: Run, agent: str, request: SendMessageRequest, extensions: frozenset[str] = frozenset()
    ) -> AsyncGenerator[bytes, None]:
        """The same as StreamResponses in JSON (§3.2.3): the Task, then its events up to that state."""


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

    async def answer(self) -> Answer:
        """Wait, after INPUT_REQUIRED or AUTH_REQUIRED was reported, for the next message to the task; it is WORKING
        then. Nothing else can be reported meanwhile. The time limit of the run begins anew with the answer.
        """


class Runtime(Protocol):
    """Agent code. One instance serves all runs of an agent in a process, concurrently.

    `decides_refusals`: a person's refusal of an authorization is a message like any other to the code. For other code,
    which may take any follow-up for a consent, the host ends the task as REJECTED.
    """

    @property
    def decides_refusals(self) -> bool:
        """Whether the code looks at `Run.answered`."""

    async def execute(self, run: Run, updates: Updates) -> None:
        """Do the work. Returns after a terminal or interrupted state; any exception FAILS the task."""

    async def cancel(self, run: Run, updates: Updates) -> None:
        """Called after `execute` was cancelled, to clean up and report CANCELED. The host does so if this does not."""
