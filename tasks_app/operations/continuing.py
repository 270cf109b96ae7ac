"""Taking a message in as the next turn of a task."""

from __future__ import annotations

from dataclasses import replace

from msgspec.json import encode

from agents.runtimes.base import Answer
from protocol.errors import InvalidParamsError, UnsupportedOperationError, Violation
from protocol.model import Message
from protocol.requests import SendMessageRequest
from protocol.states import RUNNING, TaskState
from tasks_app.execution.draft import TaskDraft
from tasks_app.execution.handover import resume
from tasks_app.execution.waiting import waits_in_process
from tasks_app.journal import Change
from tasks_app.operations.call import Call
from tasks_app.operations.deadlines import turn_deadline
from tasks_app.operations.incoming import Accepted, Incoming, repeated, start, was_accepted
from tasks_app.operations.keeping import keep_big_parts, or_discard
from tasks_app.operations.push_configs import check_room
from tasks_app.push.config import sealed
from tasks_app.tables.record import TaskRecord

_TRIES = 5  # how often a follow-up that lost a race looks at the task again


async def continue_task(call: Call, incoming: Incoming) -> Accepted:
    """Store a message as the next turn of its task, and start that or hand it to the run that waits for it.

    Big parts are stored when nothing seems to speak against it, and deleted if something did.
    """
    if not incoming.big:
        return await _continue(call, incoming)
    request = incoming.request
    record = await call.load_task(request.message.task_id)
    if await was_accepted(call, incoming):
        return await repeated(call, incoming.acceptance)
    _check_follow_up(call, record, request.message)
    files = await keep_big_parts(call, request.message)
    return await or_discard(call, files, _continue(call, incoming), used=lambda accepted: not accepted.repeated)


async def _continue(call: Call, incoming: Incoming) -> Accepted:
    request = incoming.request
    for _ in range(_TRIES):
        record = await call.load_task(request.message.task_id)
        if await was_accepted(call, incoming):
            return await repeated(call, incoming.acceptance)
        _check_follow_up(call, record, request.message)
        follow_up = _follow_up(call, record, incoming)
        if incoming.push_config is not None:
            follow_up.push_config = sealed(incoming.push_config, record.id, call.dialect, record.last_seq)
            await check_room(call, follow_up.push_config)
        follow_up.has_stored_parts = incoming.big
        if await call.host.journal.submit(follow_up):
            return await _go_on(call, _after(record, follow_up), request)
    message = "The task changed too often while the message was being taken in."
    raise UnsupportedOperationError(message, {"taskId": request.message.task_id})


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


def _follow_up(call: Call, record: TaskRecord, incoming: Incoming) -> Change:
    """The next turn: a new attempt, which goes to the run that waits for it, or else fences off any older one."""
    message, turn = incoming.request.message, incoming.turn
    message.context_id = record.context_id
    draft = TaskDraft(replace(record, attempt=record.attempt + 1))
    draft.move(TaskState.WORKING)
    draft.hear(message)
    here = call.host.origin if call.runs_here else None
    to = record.worker if waits_in_process(record) else here
    turn.first_attempt = record.attempt + 1
    deadline_at = turn_deadline(call, draft.status_at, incoming.deadline)
    text = encode(turn).decode()
    change = draft.change(record, to, request=text, acceptance=incoming.acceptance, deadline_at=deadline_at)
    change.audit = call.audit
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
    return start(call, record, request) if execution is None else Accepted(record, execution)
