"""SendMessage (§3.1.1)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from msgspec import UNSET

from protocol.errors import UnavailableError
from protocol.requests import SendMessageRequest
from protocol.states import TaskState
from tasks_app.execution.execution import Execution
from tasks_app.operations.accepting import accept_message
from tasks_app.operations.call import Call
from tasks_app.operations.incoming import Accepted
from tasks_app.operations.waiting import settled_record
from tasks_app.tables.record import TaskRecord

FIRST_UPDATE_SECONDS = 0.5
"""How long a caller who does not wait for the end waits to learn whether the agent answers with a task or a Message."""


@dataclass(slots=True)
class SendResult:
    """A SendMessageResponse: the task, or the exchange that ended with a Message."""

    record: TaskRecord
    history_length: int | None = None

    def payload(self) -> bytes:
        """The SendMessageResponse as JSON: one of `task` and `message`."""
        if self.record.state is TaskState.UNSPECIFIED:
            return b'{"message":' + self.record.history[-1].encode() + b"}"
        return b'{"task":' + self.record.render(self.history_length) + b"}"


async def send_message(call: Call, request: SendMessageRequest) -> SendResult:
    """Take a message in and answer with the settled task, or at once with `returnImmediately` (§3.2.2).

    Raises what `accept_message` raises.
    """
    configuration = request.configuration
    immediately = configuration is not UNSET and configuration.return_immediately
    accepted = await accept_message(call, request, acknowledged=immediately)
    if immediately:
        record = await _early_record(call, accepted)
    else:
        record = await settled_record(call.host, accepted)
    return SendResult(record, None if configuration is UNSET else configuration.history_length)


async def start_task(call: Call, request: SendMessageRequest, metadata: str | None = None) -> TaskRecord:
    """Take a message in and answer with its task as it was committed, before the agent has said anything.

    `metadata`, a JSON object, is what a new task begins with. Raises what `accept_message` raises.
    """
    accepted = await accept_message(call, request, acknowledged=True, metadata=metadata)
    if accepted.execution is not None:
        accepted.execution.acknowledged = True
    return accepted.record.copy()


async def _early_record(call: Call, accepted: Accepted) -> TaskRecord:
    execution = accepted.execution
    if execution is None:
        return accepted.record
    if await answers_with_message(execution):
        await execution.settled()
    if execution.fenced:  # What this process knows of the task is old. It is an answer if nothing better can be read.
        with suppress(UnavailableError):
            return await call.load_accepted(execution.record.id)
    return execution.snapshot()


async def answers_with_message(execution: Execution) -> bool:
    """Whether the agent's answer is a Message. Waits for its first update; after a while the answer is a task."""
    if not execution.first_update.done():
        await asyncio.wait([execution.first_update], timeout=FIRST_UPDATE_SECONDS)
    if execution.replied:
        return True
    execution.acknowledged = True
    return False
