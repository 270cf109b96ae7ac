"""What a right reply looks like. Each check raises WrongReply for anything else: a wrong answer is never a fast one.

The shapes are spelled out here and not taken from the host's own `protocol` package, so that a fault there cannot
hide itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Struct

COMPLETED = "TASK_STATE_COMPLETED"
WORKING = "TASK_STATE_WORKING"
SUBMITTED = "TASK_STATE_SUBMITTED"
STATES_V03 = {"completed": COMPLETED}
"""What 0.3 calls a state, as 1.0 does."""
PAGE = 50

T = TypeVar("T")


class WrongReply(Exception):
    """The server answered something else than it was asked for."""


class Part(Struct):
    """§4.1.6, text only."""

    text: str


class Artifact(Struct, rename="camel"):
    """§4.1.7."""

    artifact_id: str
    parts: list[Part]


class Message(Struct, rename="camel"):
    """§4.1.4."""

    message_id: str
    role: str
    parts: list[Part]


class Status(Struct):
    """§4.1.2."""

    state: str
    timestamp: datetime


class Task(Struct, rename="camel"):
    """§4.1.1."""

    id: str
    context_id: str
    status: Status
    artifacts: list[Artifact] = []
    history: list[Message] = []


class StatusUpdate(Struct, rename="camel"):
    """§4.2.1."""

    task_id: str
    status: Status


class ArtifactUpdate(Struct, rename="camel"):
    """§4.2.2."""

    task_id: str
    artifact: Artifact


class SendResult(Struct):
    """SendMessageResponse that holds a task."""

    task: Task


class StreamResult(Struct, rename="camel"):
    """StreamResponse: exactly one member."""

    task: Task | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None


class ListResult(Struct, rename="camel"):
    """ListTasksResponse (§3.1.4)."""

    tasks: list[Task]
    next_page_token: str
    page_size: int
    total_size: int


class Card(Struct, rename="camel"):
    """AgentCard (§4.4.1), the members that every client needs."""

    name: str
    version: str
    supported_interfaces: list[dict[str, Any]]
    skills: list[dict[str, Any]]


class Rpc(Struct, Generic[T]):
    """JSON-RPC response (§9.2)."""

    jsonrpc: str
    id: int
    result: T | None = None
    error: Any = UNSET


class Reader(Generic[T]):
    """Decodes the bodies of one binding: bare results, or results in a JSON-RPC envelope."""

    def __init__(self, shape: type[T], rpc: bool) -> None:
        self._bare = None if rpc else msgspec.json.Decoder(shape)
        self._rpc = msgspec.json.Decoder(Rpc[shape]) if rpc else None  # type: ignore[valid-type]

    def read(self, body: bytes, call_id: int) -> T:
        """The result in `body`. Raises WrongReply for an error member, another call's id, or another shape."""
        try:
            if self._bare is not None:
                return self._bare.decode(body)
            assert self._rpc is not None
            reply: Rpc[T] = self._rpc.decode(body)
        except msgspec.MsgspecError as wrong:
            raise WrongReply(f"{wrong}: {body[:300]!r}") from None
        if reply.error is not UNSET or reply.result is None:
            raise WrongReply(f"error: {body[:300]!r}")
        if reply.jsonrpc != "2.0" or reply.id != call_id:
            raise WrongReply(f"answers call {reply.id!r}, not {call_id}")
        return reply.result


def require(right: bool, what: str) -> None:
    """Raises WrongReply with `what` unless `right`."""
    if not right:
        raise WrongReply(what)


def text_of(artifacts: Sequence[Artifact]) -> str:
    """The text of the one artifact that an echo makes."""
    require(len(artifacts) == 1, f"{len(artifacts)} artifacts")
    return "".join(part.text for part in artifacts[0].parts)


def check_echo(task: Task, text: str) -> None:
    """A completed task whose artifact says `text`."""
    require(bool(task.id and task.context_id), "a task without ids")
    require(task.status.state == COMPLETED, f"not completed: {task.status.state}")
    require(text_of(task.artifacts) == text, f"another text: {text_of(task.artifacts)!r}, not {text!r}")


def check_stored(task: Task, task_id: str, text: str) -> None:
    """The completed task `task_id` with its artifact and the message that asked for it."""
    require(task.id == task_id, f"another task: {task.id}, not {task_id}")
    check_echo(task, text)
    require(len(task.history) >= 1, "no history")
    first = task.history[0]
    require(
        first.role == "ROLE_USER" and "".join(p.text for p in first.parts) == text, "another message in the history"
    )


def check_page(page: ListResult, total: int) -> None:
    """The first page of `total` completed tasks, newest first (§3.1.4)."""
    different = len({task.id for task in page.tasks})
    require(different == len(page.tasks) == PAGE, f"{different} different tasks")
    require(page.page_size == PAGE, f"page size {page.page_size}")
    require(page.total_size == total, f"total size {page.total_size}, not {total}")
    require(bool(page.next_page_token), "no next page")
    require(all(task.status.state == COMPLETED for task in page.tasks), "a task that is not completed")
    times = [task.status.timestamp for task in page.tasks]
    require(times == sorted(times, reverse=True), "not newest first")


def check_card(card: Card) -> None:
    """A card that a client can use."""
    require(bool(card.name and card.version), "a card without a name or version")
    require(bool(card.supported_interfaces and card.skills), "a card without interfaces or skills")


def events_of(body: bytes) -> list[bytes]:
    """The data of the events of a whole SSE body. Comments and other fields are skipped; lines may end in CRLF."""
    events = []
    text = body.replace(b"\r\n", b"\n")
    require(not text or text.endswith(b"\n\n"), "a stream that ends inside an event")
    for block in text.split(b"\n\n"):
        data = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
        if data:
            events.append(b"\n".join(data))
    return events


def check_stream(events: Sequence[StreamResult], text: str) -> None:
    """The whole life of one echo (§3.1.2): the task, WORKING, its artifact, COMPLETED, and nothing else."""
    require(len(events) >= 1 and events[0].task is not None, "the first event is not the task")
    task = events[0].task
    assert task is not None
    require(bool(task.id and task.context_id), "a task without ids")
    require(task.status.state in (SUBMITTED, WORKING), f"the task begins as {task.status.state}")
    states, said = [task.status.state], []
    for event in events[1:]:
        update = event.status_update or event.artifact_update
        require(update is not None and event.task is None, "an event that is no update")
        assert update is not None
        require(update.task_id == task.id, "an event of another task")
        require(states[-1] != COMPLETED, "an event after the last one")
        if event.artifact_update is not None:
            require(states[-1] == WORKING, f"an artifact while {states[-1]}")
            said.append(event.artifact_update.artifact)
        elif event.status_update is not None:
            states.append(event.status_update.status.state)
    wanted = [SUBMITTED, WORKING, COMPLETED] if states[0] == SUBMITTED else [WORKING, COMPLETED]
    require(states == wanted, f"states {states}")
    require(text_of(said) == text, f"another text: {text_of(said)!r}, not {text!r}")
