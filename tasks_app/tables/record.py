"""A task in memory: what the database holds of it, and the JSON that callers see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum

import msgspec
from msgspec import Raw, Struct

from protocol.states import TaskState
from protocol.timestamps import print_timestamp

_encode = msgspec.json.encode


class EventKind(IntEnum):
    """What an event of a task's log carries."""

    STATUS = 1
    ARTIFACT = 2
    MESSAGE = 3


@dataclass(slots=True)
class Event:
    """One entry of a task's log. `body` is TaskStatus, Artifact or Message as JSON, by `kind`."""

    seq: int
    kind: EventKind
    body: str
    created_at: datetime
    attempt: int
    state: TaskState | None = None
    metadata: str | None = None
    artifact_id: str | None = None
    append: bool = False
    last_chunk: bool = False
    _payload: bytes | None = None

    def payload(self, task_id: str, context_id: str) -> bytes:
        """The event as a StreamResponse (§3.2.3), rendered once for all streams."""
        if self._payload is None:
            self._payload = self._render(task_id, context_id).encode()
        return self._payload

    def _render(self, task_id: str, context_id: str) -> str:
        if self.kind is EventKind.MESSAGE:
            return f'{{"message":{self.body}}}'
        ids = f'"taskId":{quote(task_id)},"contextId":{quote(context_id)}'
        metadata = f',"metadata":{self.metadata}' if self.metadata else ""
        if self.kind is EventKind.STATUS:
            return f'{{"statusUpdate":{{{ids},"status":{self.body}{metadata}}}}}'
        flags = (',"append":true' if self.append else "") + (',"lastChunk":true' if self.last_chunk else "")
        return f'{{"artifactUpdate":{{{ids},"artifact":{self.body}{flags}{metadata}}}}}'


@dataclass(slots=True)
class HistoryEntry:
    """One message of a task's history. `search` is its plain text."""

    position: int
    message_id: str
    role: int
    body: str
    search: str
    created_at: datetime


class _Chunk(Struct, forbid_unknown_fields=False):
    """An artifact with its parts left as they are stored."""

    parts: list[Raw]
    metadata: dict[str, Raw] = {}


@dataclass(slots=True)
class TaskRecord:
    """A task row with its history and artifact events.

    `history` holds message bodies in order; `chunks` the artifact events in order of seq. `leased`: the lease of the
    task was not over when it was read.
    """

    id: str
    agent_id: int
    owner: str
    context_id: str
    state: TaskState
    status: str
    status_at: datetime
    created_at: datetime
    metadata: str | None = None
    last_seq: int = 0
    message_count: int = 0
    version: int = 1
    attempt: int = 1
    worker: str | None = None
    leased: bool = False
    request: str = "{}"
    deadline_at: datetime | None = None
    waiting_attempt: int | None = None
    history: list[str] = field(default_factory=list)
    chunks: list[Event] = field(default_factory=list)

    def copy(self) -> TaskRecord:
        """The task as it is now; later versions do not show in it."""
        return replace(self, history=list(self.history), chunks=list(self.chunks))

    def render(self, history_length: int | None = None, artifacts: bool = True) -> bytes:
        """The Task as JSON (§4.1.1). `history_length` None gives all, 0 no `history` member (§3.2.4)."""
        out = [f'{{"id":{quote(self.id)},"contextId":{quote(self.context_id)},"status":{self.status}']
        if artifacts and self.chunks:
            out.append(f',"artifacts":[{",".join(assemble(self.chunks))}]')
        history = self.history if history_length is None else self.history[-history_length:] if history_length else []
        if history:
            out.append(f',"history":[{",".join(history)}]')
        if self.metadata:
            out.append(f',"metadata":{self.metadata}')
        out.append("}")
        return "".join(out).encode()

    def advance(self, events: Iterable[Event], messages: list[str], metadata: str | None) -> None:
        """Take in the next version of the task, as it was just stored."""
        self.version += 1
        self.history += messages
        self.message_count += len(messages)
        self.metadata = metadata
        for event in events:
            self.last_seq = event.seq
            if event.kind is EventKind.ARTIFACT:
                self.chunks.append(event)
            elif event.kind is EventKind.STATUS and event.state is not None:
                self.state, self.status, self.status_at = event.state, event.body, event.created_at
            else:
                self.state = TaskState.UNSPECIFIED


def quote(text: str) -> str:
    """A JSON string."""
    return _encode(text).decode()


def initial_status(at: datetime) -> str:
    """The TaskStatus of a new task as JSON."""
    return f'{{"state":"TASK_STATE_SUBMITTED","timestamp":"{print_timestamp(at)}"}}'


def assemble(chunks: list[Event]) -> list[str]:
    """Artifacts as JSON from their events: `append` adds parts, anything else replaces (§4.2.2)."""
    groups: dict[str, list[str]] = {}
    for chunk in chunks:
        name = chunk.artifact_id or ""
        if chunk.append and name in groups:
            groups[name].append(chunk.body)
        else:
            groups[name] = [chunk.body]
    return [bodies[0] if len(bodies) == 1 else _join(bodies) for bodies in groups.values()]


def _join(bodies: list[str]) -> str:
    """One artifact of several chunks: the first one's members, everyone's parts, metadata merged."""
    first = msgspec.json.decode(bodies[0], type=dict[str, Raw])
    parts: list[Raw] = []
    metadata: dict[str, Raw] = {}
    for body in bodies:
        chunk = msgspec.json.decode(body, type=_Chunk)
        parts += chunk.parts
        metadata |= chunk.metadata
    merged: dict[str, object] = {**first, "parts": parts}
    if metadata:
        merged["metadata"] = metadata
    return _encode(merged).decode()
