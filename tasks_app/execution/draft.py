"""A task as it will be once everything its agent has said is stored: checks updates, numbers events, keeps history."""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from protocol import codec
from protocol.errors import InvalidAgentResponseError
from protocol.ids import new_id
from protocol.model import KEY_MAX, Artifact, Message, Role, TaskStatus
from protocol.states import TaskState, may_move
from protocol.timestamps import now, print_timestamp
from tasks_app.journal.changes import Acceptance, Change
from tasks_app.tables.record import Event, EventKind, HistoryEntry, TaskRecord, assemble


class TaskDraft:
    """Runs ahead of the stored record by what was accepted and not stored yet (`events`, `messages`; `has_stored_parts`
    says that some of it is in files).

    Every method raises `InvalidAgentResponseError` for what the state machine or the data model forbids, and then
    has changed nothing.
    """

    def __init__(self, record: TaskRecord, repeated_from: int = 0) -> None:
        """`repeated_from` is the first attempt of a turn that is repeated: what its lost runs made of an artifact is
        replaced by the first that this one says of it, and what earlier turns made stays. A message that they have said
        is not said again."""
        self._task_id = record.id
        self._context_id = record.context_id
        self._attempt = record.attempt
        self.state = record.state
        self.status = record.status
        self.status_at = record.status_at
        self.metadata = record.metadata
        self.last_seq = record.last_seq
        self.message_count = record.message_count
        self.events: list[Event] = []
        self.messages: list[HistoryEntry] = []
        self.has_stored_parts = False
        chunks = record.chunks
        self._unsaid: dict[str | None, list[Event]] = {}
        self._said: set[str] | None = None
        if 0 < repeated_from < record.attempt:
            self._said = {msgspec.json.decode(body, type=_Said).message_id for body in record.history}
            chunks = [c for c in chunks if c.attempt < repeated_from or c.attempt == record.attempt]
            said_again = {c.artifact_id for c in chunks if c.attempt == record.attempt}
            unsaid = {c.artifact_id for c in record.chunks if repeated_from <= c.attempt < record.attempt} - said_again
            self._unsaid = {name: [c for c in chunks if c.artifact_id == name] for name in unsaid}
        self._artifacts = {c.artifact_id for c in chunks}
        self._closed_artifacts = {c.artifact_id for c in chunks if c.last_chunk}

    def change(
        self,
        base: TaskRecord,
        worker: str | None = None,
        *,
        request: str | None = None,
        acceptance: Acceptance | None = None,
        deadline_at: datetime | None = None,
    ) -> Change:
        """The write that brings `base`, the stored task, to this draft; what it holds counts as stored from now on.

        `worker` is who runs the task, or did to its end; None leaves it to whoever claims it, or says that somebody
        else ended it.
        """
        events, messages = self.take()
        stored, self.has_stored_parts = self.has_stored_parts, False
        return Change(
            task_id=base.id,
            version=base.version,
            attempt=base.attempt,
            old_state=base.state,
            state=self.state,
            status=self.status,
            status_at=self.status_at,
            metadata=self.metadata,
            last_seq=self.last_seq,
            message_count=self.message_count,
            new_attempt=self._attempt,
            worker=worker,
            done=asyncio.get_running_loop().create_future(),
            request=request,
            deadline_at=deadline_at,
            acceptance=acceptance,
            events=events,
            messages=messages,
            has_stored_parts=stored,
        )

    def take(self) -> tuple[list[Event], list[HistoryEntry]]:
        """What is to be stored next; it counts as stored from now on."""
        events, messages = self.events, self.messages
        self.events, self.messages = [], []
        return events, messages

    def hear(self, message: Message) -> None:
        """A message of the caller goes into the history."""
        self.message_count += 1
        self.messages.append(heard(message, self.message_count, self.status_at))

    def move(self, state: TaskState, message: Message | None = None, metadata: Raw | UnsetType = UNSET) -> None:
        """A new status. The same state again, with nothing to say, is no event."""
        if state is TaskState.UNSPECIFIED or not may_move(self.state, state):
            raise InvalidAgentResponseError(f"A task that is {self.state} cannot become {state}.")
        if state is self.state and message is None and metadata is UNSET:
            return
        spoken = self._spoken(message, self._task_id) if message is not None else UNSET
        at = now()
        self._remember_status()
        self.state, self.status_at = state, at
        self.status = codec.encode(TaskStatus(state=state, message=spoken, timestamp=print_timestamp(at))).decode()
        if metadata is not UNSET:
            self.metadata = _merge(self.metadata, metadata)
        self._log(EventKind.STATUS, self.status, at, state=state, metadata=_text(metadata))

    def add_artifact(self, artifact: Artifact, append: bool, last_chunk: bool, metadata: Raw | UnsetType) -> None:
        """An artifact, or a chunk of one (§4.2.2). An append to an unknown artifact creates it."""
        self._check_artifact(artifact)
        name = artifact.artifact_id
        append = append and name in self._artifacts
        body = codec.encode(artifact).decode()
        if (before := self._unsaid.pop(name, None)) is not None and append:
            chunk = Event(0, EventKind.ARTIFACT, body, now(), self._attempt, artifact_id=name, append=True)
            (body,) = assemble([*before, chunk])
            append = False
        self._artifacts.add(name)
        if last_chunk:
            self._closed_artifacts.add(name)
        self._log(
            EventKind.ARTIFACT,
            body,
            now(),
            artifact_id=name,
            append=append,
            last_chunk=last_chunk,
            metadata=_text(metadata),
        )

    def reply(self, message: Message) -> None:
        """The exchange ends with a Message: it never was a task (§3.1.1)."""
        if self.state is not TaskState.SUBMITTED or self.last_seq:
            raise InvalidAgentResponseError("A Message is an answer only when it is the agent's only update.")
        at = now()
        spoken = self._spoken(message, task_id="")
        body = codec.encode(spoken).decode()
        self.state, self.status_at = TaskState.UNSPECIFIED, at
        self.status = f'{{"state":"{TaskState.UNSPECIFIED}","timestamp":"{print_timestamp(at)}"}}'
        self._say(spoken.message_id, body, codec.plain_text(spoken.parts), at)
        self._log(EventKind.MESSAGE, body, at)

    def _check_artifact(self, artifact: Artifact) -> None:
        if not may_move(self.state, TaskState.WORKING):
            raise InvalidAgentResponseError(f"A task that is {self.state} takes no more artifacts.")
        _check_id("artifactId", artifact.artifact_id)
        if not artifact.parts:
            raise InvalidAgentResponseError(f"Artifact {artifact.artifact_id!r} has no parts.")
        if artifact.artifact_id in self._closed_artifacts:
            raise InvalidAgentResponseError(f"Artifact {artifact.artifact_id!r} had its last chunk already.")

    def _remember_status(self) -> None:
        """The message of a status that is replaced goes into the history."""
        if '"message"' in self.status:
            message = msgspec.json.decode(self.status, type=TaskStatus).message
            if message is not UNSET:
                body = codec.encode(message).decode()
                self._say(message.message_id, body, codec.plain_text(message.parts), self.status_at)

    def _say(self, message_id: str, body: str, search: str, at: datetime) -> None:
        if self._said is not None:
            if message_id in self._said:
                return
            self._said.add(message_id)
        self.message_count += 1
        self.messages.append(HistoryEntry(self.message_count, message_id, AGENT_ROLE, body, search, at))

    def _spoken(self, message: Message, task_id: str) -> Message:
        """The agent's message, with its role and the ids of where it was said."""
        message_id = message.message_id or new_id()
        _check_id("messageId", message_id)
        if not message.parts:
            raise InvalidAgentResponseError("A message of the agent has no parts.")
        return msgspec.structs.replace(
            message,
            message_id=message_id,
            role=Role.AGENT,
            task_id=task_id,
            context_id=self._context_id,
        )

    def _log(
        self,
        kind: EventKind,
        body: str,
        at: datetime,
        *,
        state: TaskState | None = None,
        metadata: str | None = None,
        artifact_id: str | None = None,
        append: bool = False,
        last_chunk: bool = False,
    ) -> None:
        self.last_seq += 1
        self.events.append(
            Event(self.last_seq, kind, body, at, self._attempt, state, metadata, artifact_id, append, last_chunk)
        )


class _Said(Struct, rename="camel"):
    message_id: str = ""


USER_ROLE, AGENT_ROLE = 1, 2  # numbers of Role in the protobuf definition


def heard(message: Message, position: int, at: datetime) -> HistoryEntry:
    """A caller's message as an entry of the history."""
    body = codec.encode(message).decode()
    return HistoryEntry(position, message.message_id, USER_ROLE, body, codec.plain_text(message.parts), at)


def _check_id(name: str, value: str) -> None:
    if not value or len(value) > KEY_MAX or "\0" in value:
        raise InvalidAgentResponseError(f"{name} must have 1 to {KEY_MAX} characters and no U+0000.")


def _text(raw: Raw | UnsetType) -> str | None:
    return None if isinstance(raw, UnsetType) else bytes(raw).decode()


def _merge(metadata: str | None, more: Raw) -> str:
    """Metadata of a status update is added to the task's, member by member."""
    merged = msgspec.json.decode(metadata or "{}", type=dict[str, Raw])
    merged |= msgspec.json.decode(more, type=dict[str, Raw])
    return msgspec.json.encode(merged).decode()
