"""Taking a message in: as a new task, as the next turn of one, or as a repetition of what was accepted before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from msgspec import UNSET
from msgspec.json import encode

from agents.runtimes.base import Answer
from protocol import codec
from protocol.errors import (
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    UnavailableError,
    UnsupportedOperationError,
    Violation,
)
from protocol.ids import new_id
from protocol.model import Message, TaskPushNotificationConfig
from protocol.requests import SendMessageRequest
from protocol.states import RUNNING, TaskState
from protocol.timestamps import now
from tasks_app.content.keeping import has_big
from tasks_app.execution.draft import TaskDraft, heard, lease_end
from tasks_app.execution.execution import Execution
from tasks_app.execution.handover import resume
from tasks_app.execution.turn import Turn
from tasks_app.execution.waiting import waits_in_process
from tasks_app.journal import Acceptance, Change, Creation
from tasks_app.operations.call import Call
from tasks_app.operations.deadlines import asked_deadline, past_deadline, turn_deadline
from tasks_app.operations.keeping import big_fingerprint, keep_big_parts, or_discard
from tasks_app.operations.push_configs import check_room
from tasks_app.push.config import check_config, sealed
from tasks_app.record import HistoryEntry, TaskRecord, initial_status

_TRIES = 5  # how often a follow-up that lost a race looks at the task again


@dataclass(slots=True)
class Accepted:
    """The task that a message belongs to, and its run if that is in this process.

    `repeated` marks a message that had been accepted before: nothing new was started.
    """

    record: TaskRecord
    execution: Execution | None
    repeated: bool = False


async def accept_message(
    call: Call, request: SendMessageRequest, acknowledged: bool, metadata: str | None = None
) -> Accepted:
    """Store the message and start the agent; the message is committed before anything runs (§3.1.1).

    `acknowledged` says that the caller is going to be given a task before the agent has answered; an agent that
    delegates always is. `metadata`, a JSON object, is what a new task has before its agent adds to it. Raises
    ContentTypeNotSupportedError, PushNotificationNotSupportedError, TaskNotFoundError, UnsupportedOperationError for a
    task that has ended or is busy, InvalidParamsError for a wrong context, a repeated messageId with other content or
    a webhook that may not be called, and for big parts beyond a limit; UnavailableError in a process that ends, and
    without a storage for big parts. Then nothing was stored.
    """
    if call.host.draining and call.runs_here:
        raise UnavailableError(retry_after=1)
    call.check_extensions()
    _check_content(call, request)
    big = has_big(request.message.parts)
    acceptance = None
    # Of strangers without a common history, one could fetch another's answer with a guessed message.
    if call.entry.idempotent_sends and not call.is_stranger:
        digest = await big_fingerprint(request) if big else codec.fingerprint(request)
        acceptance = Acceptance(call.entry.id, call.caller.owner, request.message.message_id, digest)
    push_config = await _take_push_config(call, request)
    turn = Turn(
        configuration=request.configuration,
        metadata=request.metadata,
        extensions=sorted(call.extensions),
        authenticated=call.caller.authenticated,
        acknowledged=acknowledged or call.parent_id is not None,
        answered=call.answered,
    )
    deadline = asked_deadline(request)
    if deadline is not None and deadline <= now():
        if acceptance is not None and await call.host.store.receipt(*_receipt_key(acceptance)) is not None:
            return await _repeated(call, acceptance)
        if call.version != "tasks":
            raise past_deadline()
        deadline = None  # The task REST dialect keeps what is only a note there, such as the date in its own examples.
    if not request.message.task_id:
        return await _create_task(call, request, turn, acceptance, push_config, metadata, deadline, big)
    go_on = _continue_with_files if big else _continue_task
    return await go_on(call, request, turn, acceptance, push_config, deadline)


def _check_content(call: Call, request: SendMessageRequest) -> None:
    for part in request.message.parts:
        if not call.entry.accepts_part(part):
            raise ContentTypeNotSupportedError(part.media_type)


async def _take_push_config(call: Call, request: SendMessageRequest) -> TaskPushNotificationConfig | None:
    """The checked webhook of a request, taken out of it: its secrets are no business of the agent or of the turn that
    is stored."""
    if request.configuration is UNSET or request.configuration.task_push_notification_config is UNSET:
        return None
    if not call.entry.push_notifications:
        raise PushNotificationNotSupportedError
    config = request.configuration.task_push_notification_config
    signer = call.host.registry.signer
    await check_config(config, call.host.outbound, signer, "configuration.taskPushNotificationConfig.")
    request.configuration.task_push_notification_config = UNSET
    return config


async def _create_task(
    call: Call,
    request: SendMessageRequest,
    turn: Turn,
    acceptance: Acceptance | None,
    push_config: TaskPushNotificationConfig | None,
    metadata: str | None,
    deadline: datetime | None,
    big: bool,
) -> Accepted:
    message = request.message
    message.task_id = new_id()
    files = await keep_big_parts(call, message) if big else []
    message.context_id = message.context_id or new_id()
    at = now()
    entry = heard(message, 1, at)
    worker = call.host.origin if call.runs_here else None
    deadline_at = turn_deadline(call, at, deadline)
    record = TaskRecord(
        id=message.task_id,
        agent_id=call.entry.id,
        owner=call.caller.owner,
        context_id=message.context_id,
        state=TaskState.SUBMITTED,
        status=initial_status(at),
        status_at=at,
        created_at=at,
        message_count=1,
        worker=worker,
        lease_until=lease_end(worker, deadline_at),
        request=encode(turn).decode(),
        deadline_at=deadline_at,
        history=[entry.body],
        metadata=metadata,
    )
    creation = _creation(call, record, entry, acceptance)
    if push_config is not None:
        creation.push_config = sealed(push_config, record.id, call.dialect, cursor=0)
    creation.has_stored_parts = big
    writing = call.host.journal.submit(creation)
    if await (or_discard(call, files, writing, used=bool) if big else writing):
        return _start(call, record, request)
    if acceptance is None:
        raise InternalError
    return await _repeated(call, acceptance)


def _creation(call: Call, record: TaskRecord, message: HistoryEntry, acceptance: Acceptance | None) -> Creation:
    return Creation(
        task_id=record.id,
        agent_id=record.agent_id,
        owner=record.owner,
        context_id=record.context_id,
        status=record.status,
        created_at=record.created_at,
        message=message,
        dialect=call.dialect,
        request=record.request,
        worker=record.worker,
        lease_until=record.lease_until,
        acceptance=acceptance,
        done=asyncio.get_running_loop().create_future(),
        metadata=record.metadata,
        parent_id=call.parent_id,
        deadline_at=record.deadline_at,
    )


async def _continue_task(
    call: Call,
    request: SendMessageRequest,
    turn: Turn,
    acceptance: Acceptance | None,
    push_config: TaskPushNotificationConfig | None,
    deadline: datetime | None,
    big: bool = False,
) -> Accepted:
    for _ in range(_TRIES):
        record = await call.load_task(request.message.task_id)
        if acceptance is not None and await call.host.store.receipt(*_receipt_key(acceptance)) is not None:
            return await _repeated(call, acceptance)
        _check_follow_up(call, record, request.message)
        follow_up = _follow_up(call, record, request.message, turn, acceptance, deadline)
        if push_config is not None:
            follow_up.push_config = sealed(push_config, record.id, call.dialect, record.last_seq)
            await check_room(call, follow_up.push_config)
        follow_up.has_stored_parts = big
        if await call.host.journal.submit(follow_up):
            return await _go_on(call, _after(record, follow_up), request)
    message = "The task changed too often while the message was being taken in."
    raise UnsupportedOperationError(message, {"taskId": request.message.task_id})


async def _continue_with_files(
    call: Call,
    request: SendMessageRequest,
    turn: Turn,
    acceptance: Acceptance | None,
    push_config: TaskPushNotificationConfig | None,
    deadline: datetime | None,
) -> Accepted:
    """The same for a message with big parts. They are stored when nothing seems to speak against it, and deleted if
    something did."""
    record = await call.load_task(request.message.task_id)
    if acceptance is not None and await call.host.store.receipt(*_receipt_key(acceptance)) is not None:
        return await _repeated(call, acceptance)
    _check_follow_up(call, record, request.message)
    files = await keep_big_parts(call, request.message)
    work = _continue_task(call, request, turn, acceptance, push_config, deadline, big=True)
    return await or_discard(call, files, work, used=lambda accepted: not accepted.repeated)


def _check_follow_up(call: Call, record: TaskRecord, message: Message) -> None:
    if message.context_id and message.context_id != record.context_id:  # §3.4.3
        raise InvalidParamsError([Violation("message.contextId", "is not the context of the task")])
    where = {"taskId": record.id, "state": str(record.state)}
    if call.answers_attempt not in (None, record.attempt):
        raise UnsupportedOperationError("The task has gone on since: somebody else was first to answer it.", where)
    if record.state.terminal:
        raise UnsupportedOperationError(f"The task is {record.state} and takes no more messages.", where)
    if record.state in RUNNING:
        raise UnsupportedOperationError("The task is busy with an earlier message.", where)


def _follow_up(
    call: Call,
    record: TaskRecord,
    message: Message,
    turn: Turn,
    acceptance: Acceptance | None,
    deadline: datetime | None,
) -> Change:
    """The next turn: a new attempt, which goes to the run that waits for it, or else fences off any older one."""
    message.context_id = record.context_id
    draft = TaskDraft(replace(record, attempt=record.attempt + 1))
    draft.move(TaskState.WORKING)
    draft.hear(message)
    here = call.host.origin if call.runs_here else None
    to = record.worker if waits_in_process(record) else here
    turn.first_attempt = record.attempt + 1
    deadline_at = turn_deadline(call, draft.status_at, deadline)
    text = encode(turn).decode()
    change = draft.change(record, to, request=text, acceptance=acceptance, deadline_at=deadline_at)
    if to not in (here, None):
        change.lease_until = record.lease_until  # it is for the process that waits to say that it lives
    return change


def _after(record: TaskRecord, change: Change) -> TaskRecord:
    after = replace(
        record,
        attempt=change.new_attempt,
        worker=change.worker,
        request=change.request or record.request,
        deadline_at=change.deadline_at,
        history=list(record.history),
        chunks=list(record.chunks),
    )
    after.advance(change.events, [m.body for m in change.messages], change.metadata)
    return after


async def _go_on(call: Call, record: TaskRecord, request: SendMessageRequest) -> Accepted:
    """Start the next turn, or hand it to the run that waits for it, here or in another process."""
    host = call.host
    if record.worker not in (None, host.origin):
        await host.waits.tell(record.worker, record.id)
        return Accepted(record, None)
    execution = resume(host, record, Answer(request.message, call.answered)) if record.worker else None
    return _start(call, record, request) if execution is None else Accepted(record, execution)


def _start(call: Call, record: TaskRecord, request: SendMessageRequest) -> Accepted:
    if record.worker is None:
        call.host.doorbell.ring(record.id, record.attempt)
        return Accepted(record, None)
    execution = call.host.execute(call.entry, record, request, call.caller, call.extensions, call.answered)
    if call.parent_id is not None:
        execution.acknowledged = True
    return Accepted(record, execution)


async def _repeated(call: Call, acceptance: Acceptance) -> Accepted:
    """The task of a message that was accepted before; the other content is refused (§3.3.1)."""
    receipt = await call.host.store.receipt(*_receipt_key(acceptance))
    if receipt is None:
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
