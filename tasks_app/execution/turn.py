"""What a task's row keeps of the request of its newest turn, so that any process can run it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from agents.runtimes.base import Answered
from protocol.model import Message, Role, Task
from protocol.requests import SendMessageConfiguration, SendMessageRequest
from protocol.states import TaskState
from protocol.timestamps import print_timestamp
from tasks_app.tables.record import TaskRecord


class Turn(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A SendMessageRequest without its message, and what the host knows of the call.

    `acknowledged` says that the caller has been given a task, so that a Message cannot be the whole answer any more.
    `answered` names who sent it from the task's page, in the caller's place. `first_attempt` is that of a follow-up.
    """

    configuration: SendMessageConfiguration | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    extensions: list[str] = []
    authenticated: bool = False
    acknowledged: bool = False
    answered: Answered | None = None
    first_attempt: int = 0

    def request(self, message: Message) -> SendMessageRequest:
        """The request as the caller sent it."""
        return SendMessageRequest(message=message, configuration=self.configuration, metadata=self.metadata)


def turn_of(record: TaskRecord) -> Turn:
    """The stored turn of a task."""
    return msgspec.json.decode(record.request, type=Turn)


def message_of(record: TaskRecord) -> Message:
    """The message that the newest turn answers: the last one of the caller in the history."""
    return msgspec.json.decode(record.history[_newest_heard(record)], type=Message)


def first_attempt_of(record: TaskRecord, turn: Turn) -> int:
    """The first run of the newest turn: those between that one and the newest were lost, and are repeated."""
    return turn.first_attempt or (1 if _newest_heard(record) == 0 else record.attempt)


def as_begun(record: TaskRecord, first_attempt: int) -> TaskRecord:
    """The task as it was when its newest turn began: without what runs of the turn have said that were lost since."""
    if first_attempt == record.attempt:
        return record
    status = record.status
    if record.state is TaskState.WORKING:
        status = f'{{"state":"{TaskState.WORKING}","timestamp":"{print_timestamp(record.status_at)}"}}'
    return replace(
        record,
        status=status,
        history=record.history[: _newest_heard(record) + 1],
        chunks=[chunk for chunk in record.chunks if chunk.attempt < first_attempt],
    )


def _newest_heard(record: TaskRecord) -> int:
    """Where in the history the caller's newest message is."""
    for index in range(len(record.history) - 1, -1, -1):
        if msgspec.json.decode(record.history[index], type=_Said).role is Role.USER:
            return index
    return len(record.history) - 1


class _Said(Struct):
    role: Role


def task_of(record: TaskRecord) -> Task:
    """The task as a struct, for agent code."""
    return msgspec.json.decode(record.render(), type=Task)
