"""SendStreamingMessage (§3.1.2) and SubscribeToTask (§3.1.6): a snapshot of the task at seq n, then events n+1… ."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from django.conf import settings
from msgspec import UNSET

from protocol.errors import UnsupportedOperationError
from protocol.requests import SendMessageRequest, SubscribeToTaskRequest
from protocol.states import TERMINAL, TaskState
from protocol.timestamps import now
from tasks_app.hub import Follower
from tasks_app.operations.accepting import Accepted, accept_message
from tasks_app.operations.call import Call
from tasks_app.operations.sending import Answer, answers_with_message
from tasks_app.record import EventKind, TaskRecord

AUTH_WAIT_SECONDS = 3600.0
"""How long a stream stays open while the task waits for authorization (§7.6.1)."""

_SEND_ENDS_AT = TERMINAL | {TaskState.INPUT_REQUIRED, TaskState.UNSPECIFIED}
_SUBSCRIPTION_ENDS_AT = TERMINAL | {TaskState.UNSPECIFIED}


@dataclass(slots=True)
class Frame:
    """A StreamResponse as JSON and the seq of the log that it brings the reader to. `payload` None: keep-alive."""

    seq: int
    payload: bytes | None


_KEEP_ALIVE = Frame(0, None)


async def stream_message(call: Call, request: SendMessageRequest) -> AsyncIterator[Frame]:
    """Take a message in; the iterator gives the Task and its events, or the one Message.

    Raises UnsupportedOperationError for an agent without streaming and what `accept_message` raises, before a frame.
    """
    _check_streaming(call)
    accepted = await accept_message(call, request, acknowledged=call.entry.execution != call.host.role)
    record = accepted.record.copy()  # before the agent's first update, so that every stream tells the whole story
    configuration = request.configuration
    return _follow_send(call, accepted, record, None if configuration is UNSET else configuration.history_length)


async def subscribe_to_task(call: Call, request: SubscribeToTaskRequest) -> AsyncIterator[Frame]:
    """Follow a running task. With `call.resume_after` the first Task is the task as it was at that seq.

    Raises UnsupportedOperationError for an agent without streaming or a task that has ended, TaskNotFoundError.
    """
    _check_streaming(call)
    record = await call.load_task(request.id)
    if record.state.terminal:
        raise UnsupportedOperationError(f"The task is {record.state}; there is nothing to subscribe to.")
    return _follow_subscription(call, record.id)


def _check_streaming(call: Call) -> None:
    if not call.entry.streaming:
        raise UnsupportedOperationError("The agent does not support streaming.")


async def _follow_send(
    call: Call, accepted: Accepted, record: TaskRecord, history_length: int | None
) -> AsyncIterator[Frame]:
    execution = accepted.execution
    async with call.host.hub.follow(record.id) as follower:
        if execution is None or accepted.repeated:
            now_stored = await call.load_accepted(record.id)
            record = now_stored if accepted.repeated else record
            known = now_stored.last_seq
        else:
            if await answers_with_message(execution):
                await execution.settled()
                record = execution.snapshot()
            known = execution.record.last_seq
        yield _first_frame(record, history_length)
        async for frame in _follow(follower, record, known, _SEND_ENDS_AT):
            yield frame


async def _follow_subscription(call: Call, task_id: str) -> AsyncIterator[Frame]:
    async with call.host.hub.follow(task_id) as follower:
        record = await call.load_task(task_id)
        known = record.last_seq
        after = call.resume_after
        if after is not None and 0 <= after < record.last_seq:
            record = record.at(after, await call.host.store.statuses(task_id))
        yield _first_frame(record, None)
        async for frame in _follow(follower, record, known, _SUBSCRIPTION_ENDS_AT):
            yield frame


def _first_frame(record: TaskRecord, history_length: int | None) -> Frame:
    return Frame(record.last_seq, Answer(record, history_length).payload())


async def _follow(
    follower: Follower, record: TaskRecord, known: int, ends_at: frozenset[TaskState]
) -> AsyncIterator[Frame]:
    """Events after `record`, while the log is known to go to `known` at least."""
    state, since = record.state, now()
    follower.begin(record.last_seq, known)
    while state not in ends_at:
        events = await follower.next(settings.KEEP_ALIVE_SECONDS)
        if not events:
            if state is TaskState.AUTH_REQUIRED and (now() - since).total_seconds() > AUTH_WAIT_SECONDS:
                return
            yield _KEEP_ALIVE
        for event in events:
            yield Frame(event.seq, event.payload(record.id, record.context_id))
            if event.kind is EventKind.MESSAGE:
                return
            if event.state is not None:
                state, since = event.state, event.created_at
            if state in ends_at:
                return
