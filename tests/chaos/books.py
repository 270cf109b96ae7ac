"""What is written down during a run, by the three parties that the auditor compares.

Clients note what they were told (`Books`), the webhook receiver what arrived (`Arrival`), and in the end the database
is read (`Stored`). Everything of a stream, a webhook or a log is an `Item`: words that say the same wherever it came
from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TERMINAL = frozenset({"COMPLETED", "FAILED", "CANCELED", "REJECTED"})
WAITING = frozenset({"INPUT_REQUIRED", "AUTH_REQUIRED"})
MESSAGE = "UNSPECIFIED"
"""The state of an exchange that was answered with a Message: a row, but no task."""


@dataclass(frozen=True, slots=True)
class Item:
    """A StreamResponse (§3.2.3) without what may be written in several ways: kind, and what it says.

    `state` is that of a task or a status, `texts` those of one artifact, or of all artifacts of a task.
    """

    kind: str
    state: str = ""
    timestamp: str = ""
    artifact: str = ""
    append: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heard:
    """One thing that a stream said, and the number of its event."""

    seq: int
    item: Item


@dataclass(slots=True)
class Leg:
    """One connection of a stream; `after` is the Last-Event-ID that it was opened with."""

    binding: str
    after: int | None = None
    heard: list[Heard] = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """A stream over all its connections. `ended`: the client heard how the task ended, or that it waits for input."""

    task_id: str
    legs: list[Leg] = field(default_factory=list)
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Ack:
    """A reply to a send: the message was taken, for this task ("" where the answer was a Message).

    `makes` is what the task's artifact holds when it is COMPLETED, chunk by chunk; None where nobody can tell.
    """

    agent: str
    message_id: str
    task_id: str
    makes: tuple[str, ...] | None = None


@dataclass(slots=True)
class Books:
    """What clients were told. `ends` are (task id, state), `reads` tasks as a client read them when all was quiet, and
    `cancels` (task id, seconds) how long a cancel took then."""

    acks: list[Ack] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    hooks: dict[str, str] = field(default_factory=dict)  # path of a webhook -> messageId of the send that asked for it
    reads: list[tuple[str, Item]] = field(default_factory=list)
    cancels: list[tuple[str, float]] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request to a webhook: `taken` if it was answered with success."""

    item: Item
    taken: bool


Arrivals = dict[str, list[Arrival]]
"""By path, in the order of arrival."""


@dataclass(slots=True)
class StoredTask:
    """A task's row and its log; `log` has (seq, item) in order of seq.

    `made` are the attempts that artifact events name, `recorded` those of which there is a record.
    """

    id: str
    agent: str
    state: str
    last_seq: int
    log: list[tuple[int, Item]] = field(default_factory=list)
    made: set[int] = field(default_factory=set)
    recorded: set[int] = field(default_factory=set)


Counter = dict[tuple[str, str, str], int]
"""(agent, owner, state) -> number of tasks."""


@dataclass(slots=True)
class Stored:
    """The database. `messages` has, by messageId, the tasks in whose history a caller's message is, once per entry."""

    tasks: dict[str, StoredTask] = field(default_factory=dict)
    messages: dict[str, list[str]] = field(default_factory=dict)
    waiting_webhooks: list[str] = field(default_factory=list)
    counted: Counter = field(default_factory=dict)
    counters: Counter = field(default_factory=dict)


def item_of(response: dict[str, Any]) -> Item:
    """Of a StreamResponse as 1.0 writes it."""
    ((kind, body),) = response.items()
    if kind == "statusUpdate":
        return status_item(body["status"])
    if kind == "artifactUpdate":
        return artifact_item(body["artifact"], bool(body.get("append")))
    if kind == "message":
        return Item("message", MESSAGE)
    status = status_item(body["status"])
    texts = tuple(text for artifact in body.get("artifacts", ()) for text in _texts(artifact))
    return Item("task", status.state, status.timestamp, texts=texts)


def status_item(status: dict[str, Any]) -> Item:
    """Of a TaskStatus (§4.1.2)."""
    return Item("status", status["state"].removeprefix("TASK_STATE_"), status.get("timestamp", ""))


def artifact_item(artifact: dict[str, Any], append: bool) -> Item:
    """Of an Artifact (§4.1.7) in an update."""
    return Item("artifact", artifact=artifact["artifactId"], append=append, texts=_texts(artifact))


def _texts(artifact: dict[str, Any]) -> tuple[str, ...]:
    return tuple(part["text"] for part in artifact["parts"])
