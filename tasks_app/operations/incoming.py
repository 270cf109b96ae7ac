"""A message on its way in: what is known of it before it is stored, and the task that it belongs to afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from protocol.errors import InternalError, InvalidParamsError, Violation
from protocol.model import TaskPushNotificationConfig
from protocol.requests import SendMessageRequest
from tasks_app.execution.execution import Execution
from tasks_app.execution.turn import Turn
from tasks_app.journal import Acceptance
from tasks_app.operations.call import Call
from tasks_app.tables.record import TaskRecord


@dataclass(slots=True)
class Incoming:
    """A checked message of a call. `acceptance` is None where a repetition is not looked for, `push_config` the webhook
    that came with it, `deadline` what its caller wants; `big` says that parts of it go to files."""

    request: SendMessageRequest
    turn: Turn
    acceptance: Acceptance | None
    push_config: TaskPushNotificationConfig | None
    deadline: datetime | None
    big: bool


@dataclass(slots=True)
class Accepted:
    """The task that a message belongs to, and its run if that is in this process.

    `repeated` marks a message that had been accepted before: nothing new was started.
    """

    record: TaskRecord
    execution: Execution | None
    repeated: bool = False


def start(call: Call, record: TaskRecord, request: SendMessageRequest) -> Accepted:
    """Run the newest turn of a task that was just stored: here, or where the doorbell is heard."""
    if record.worker is None:
        call.host.doorbell.ring(record.id, record.attempt)
        return Accepted(record, None)
    execution = call.host.execute(call.entry, record, request, call.caller, call.extensions, call.answered)
    if call.parent_id is not None:
        execution.acknowledged = True
    return Accepted(record, execution)


async def was_accepted(call: Call, incoming: Incoming) -> bool:
    """Whether the message was taken in before."""
    acceptance = incoming.acceptance
    return acceptance is not None and await call.host.store.receipt(*_receipt_key(acceptance)) is not None


async def repeated(call: Call, acceptance: Acceptance | None) -> Accepted:
    """The task of a message that was accepted before; the other content is refused (§3.3.1)."""
    receipt = None if acceptance is None else await call.host.store.receipt(*_receipt_key(acceptance))
    if acceptance is None or receipt is None:
        raise InternalError
    task_id, digest = receipt
    if digest != acceptance.digest:
        raise InvalidParamsError([Violation("message.messageId", "was used before for a message with other content")])
    record = await call.host.store.load(task_id)
    if record is None:
        raise InternalError
    return Accepted(record, call.host.executions.get(task_id), repeated=True)


def _receipt_key(acceptance: Acceptance) -> tuple[int, str, str]:
    return acceptance.agent_id, acceptance.owner, acceptance.message_id
