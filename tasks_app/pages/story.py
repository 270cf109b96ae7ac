"""What happened to a task, read from its rows for the task page: states, conversation, artifacts and the event log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET

from protocol.model import Artifact, Message, Part, Role, TaskStatus
from protocol.states import INTERRUPTED, TaskState
from tasks_app import models
from tasks_app.pages import parts, states
from tasks_app.pages.parts import Block
from tasks_app.tables.record import EventKind

MOST_STATUSES = 2000
MOST_MESSAGES = 200
MOST_ARTIFACT_CHARACTERS = 16 * 1024 * 1024  # of stored artifact events that one page reads
LOG_PAGE = 100

_status = msgspec.json.Decoder(TaskStatus).decode
_message = msgspec.json.Decoder(Message).decode
_artifact = msgspec.json.Decoder(Artifact).decode


@dataclass(slots=True)
class Step:
    """One state of the timeline, from `at` until the next one. `updates` counts the reports of that state."""

    look: states.Look
    at: datetime
    lasted: timedelta | None = None
    updates: int = 1

    @property
    def waiting(self) -> bool:
        """Whether the time is spent waiting for a person."""
        return self.look.state in INTERRUPTED


@dataclass(slots=True)
class Bubble:
    """One message of the conversation. `look` is set for a message that came with a state."""

    key: str
    from_user: bool
    at: datetime
    blocks: list[Block]
    message_id: str
    look: states.Look | None = None


@dataclass(slots=True)
class Shelf:
    """An artifact put together from its events: `chunks` are (origin, parts) since it was last replaced."""

    artifact_id: str
    name: str = ""
    description: str = ""
    chunks: list[tuple[str, Sequence[Part]]] = field(default_factory=list)
    last_seq: int = 0
    complete: bool = False
    replaced: int = 0

    @property
    def blocks(self) -> list[Block]:
        """What to show."""
        return parts.joined(self.chunks)


@dataclass(slots=True)
class LogLine:
    """One event of the log. `look` is set for a change of state."""

    seq: int
    at: datetime
    kind: str
    summary: str
    look: states.Look | None
    attempt: int


def timeline(task: models.Task) -> list[Step]:
    """SUBMITTED at the start, then every change of state; reports of the same state are one step."""
    events = models.Event.objects.filter(task=task, kind=EventKind.STATUS).order_by("seq")
    steps = [Step(states.BY_NUMBER[TaskState.SUBMITTED.number], task.created_at)]
    for body, at in events.values_list("body", "created_at")[:MOST_STATUSES]:
        look = states.BY_NUMBER[_status(body).state.number]
        if look is steps[-1].look:
            steps[-1].updates += 1
            continue
        steps[-1].lasted = at - steps[-1].at
        steps.append(Step(look, at))
    return steps


def conversation(task: models.Task) -> list[Bubble]:
    """The newest messages of the history and of the events, oldest first, each once."""
    bubbles = {bubble.message_id: bubble for bubble in _history(task)}
    for bubble in _from_events(task):
        known = bubbles.setdefault(bubble.message_id, bubble)
        known.look = bubble.look
        known.at = min(known.at, bubble.at)
    return sorted(bubbles.values(), key=lambda b: b.at)


def _history(task: models.Task) -> Iterator[Bubble]:
    rows = models.Message.objects.filter(task=task).order_by("-position")[:MOST_MESSAGES]
    for row in reversed(rows):
        yield _bubble(_message(row.body), f"m{row.position}", row.created_at)


def _from_events(task: models.Task) -> Iterator[Bubble]:
    """Messages that came with a status, and the message that answered instead of a task."""
    events = models.Event.objects.filter(task=task).exclude(kind=EventKind.ARTIFACT)
    with_message = events.filter(body__contains='"messageId"').order_by("-seq")[:MOST_MESSAGES]
    for event in reversed(with_message):
        origin = f"e{event.seq}"
        if event.kind == EventKind.MESSAGE:
            yield _bubble(_message(event.body), origin, event.created_at)
            continue
        status = _status(event.body)
        if isinstance(status.message, Message):
            bubble = _bubble(status.message, origin, event.created_at)
            bubble.look = states.BY_NUMBER[status.state.number]
            yield bubble


def _bubble(message: Message, origin: str, at: datetime) -> Bubble:
    blocks = parts.blocks(message.parts, origin)
    return Bubble(origin, message.role == Role.USER, at, blocks, message.message_id)


def artifacts(task: models.Task) -> tuple[list[Shelf], bool]:
    """Artifacts in the order of their first event, and whether all of them were read (§4.2.2)."""
    shelves: dict[str, Shelf] = {}
    left = MOST_ARTIFACT_CHARACTERS
    events = models.Event.objects.filter(task=task, kind=EventKind.ARTIFACT).order_by("seq")
    for event in events.iterator(chunk_size=200):
        left -= len(event.body)
        if left < 0:
            return list(shelves.values()), False
        key = event.artifact_id or ""
        shelf = shelves.setdefault(key, Shelf(key))
        _put(shelf, event)
    return list(shelves.values()), True


def _put(shelf: Shelf, event: models.Event) -> None:
    artifact = _artifact(event.body)
    if not event.append and shelf.chunks:
        shelf.chunks.clear()
        shelf.replaced += 1
    shelf.chunks.append((f"e{event.seq}", artifact.parts))
    shelf.name = artifact.name or shelf.name
    shelf.description = artifact.description or shelf.description
    shelf.last_seq = event.seq
    shelf.complete = event.last_chunk


def log(task: models.Task, before: int | None = None) -> tuple[list[LogLine], int | None]:
    """A page of the event log, oldest first, and the seq to pass as `before` for the page before it, if any."""
    events = models.Event.objects.filter(task=task).order_by("-seq")
    if before is not None:
        events = events.filter(seq__lt=before)
    rows = list(events[: LOG_PAGE + 1])
    shown = rows[:LOG_PAGE]
    lines = [_line(event) for event in reversed(shown)]
    return lines, shown[-1].seq if len(rows) > LOG_PAGE else None


def _line(event: models.Event) -> LogLine:
    look = None
    if event.kind == EventKind.STATUS:
        status = _status(event.body)
        look = states.BY_NUMBER[status.state.number]
        kind, summary = "status", parts.outline(status.message.parts) if status.message is not UNSET else ""
    elif event.kind == EventKind.MESSAGE:
        kind, summary = "message", parts.outline(_message(event.body).parts)
    else:
        kind, summary = "artifact", _artifact_summary(event)
    return LogLine(event.seq, event.created_at, kind, summary, look, event.attempt)


def _artifact_summary(event: models.Event) -> str:
    artifact = _artifact(event.body)
    how = "append to" if event.append else "set"
    last = ", last chunk" if event.last_chunk else ""
    return f"{how} {artifact.name or artifact.artifact_id}{last}: {parts.outline(artifact.parts)}"
