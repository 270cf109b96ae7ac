"""What a task's row keeps of the request of its newest turn, so that any process can run it."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from agents.runtimes.base import Answered
from protocol.model import Message, Task
from protocol.requests import SendMessageConfiguration, SendMessageRequest
from tasks_app.record import TaskRecord


class Turn(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A SendMessageRequest without its message, and what the host knows of the call.

    `acknowledged` says that the caller has been given a task, so that a Message cannot be the whole answer any more.
    `answered` names who sent it from the task's page, in the caller's place.
    """

    configuration: SendMessageConfiguration | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    extensions: list[str] = []
    authenticated: bool = False
    acknowledged: bool = False
    answered: Answered | None = None

    def request(self, message: Message) -> SendMessageRequest:
        """The request as the caller sent it."""
        return SendMessageRequest(message=message, configuration=self.configuration, metadata=self.metadata)


def turn_of(record: TaskRecord) -> Turn:
    """The stored turn of a task."""
    return msgspec.json.decode(record.request, type=Turn)


def message_of(record: TaskRecord) -> Message:
    """The message that the newest turn answers: the last one in the history."""
    return msgspec.json.decode(record.history[-1], type=Message)


def task_of(record: TaskRecord) -> Task:
    """The task as a struct, for agent code."""
    return msgspec.json.decode(record.render(), type=Task)
