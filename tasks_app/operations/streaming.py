"""SendStreamingMessage (§3.1.2) and SubscribeToTask (§3.1.6): a snapshot of the task at seq n, then events n+1… ."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from msgspec import UNSET

from protocol.errors import UnavailableError, UnsupportedOperationError
from protocol.model import StreamResponse
from protocol.requests import SendMessageRequest, SubscribeToTaskRequest
from protocol.states import TERMINAL, TaskState
from protocol.stored_part import MARK
from protocol.timestamps import now
from tasks_app.content.restoring import Policy, restored
from tasks_app.live.hub import Follower
from tasks_app.operations.accepting import accept_message
from tasks_app.operations.call import Call
from tasks_app.operations.contents import policy_of
from tasks_app.operations.incoming import Accepted
from tasks_app.operations.sending import SendResult, answers_with_message
from tasks_app.tables.past import task_at
from tasks_app.tables.record import Event, EventKind, TaskRecord

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


class TaskStream:
    """Frames of one task, ended by a state of `ends_at`. Has to be closed.

    A class and no generator: while it waits it is one frame, and it holds the ids of the task, not the task. What it
    was given and nobody has read yet is one page of the log.
    """

    __slots__ = (
        "_base_url",
        "_by_url",
        "_context_id",
        "_ends_at",
        "_first",
        "_follower",
        "_over",
        "_ready",
        "_since",
        "_state",
        "_task_id",
    )

    def __init__(
        self,
        call: Call,
        follower: Follower,
        record: TaskRecord,
        known: int,
        ends_at: frozenset[TaskState],
        history_length: int | None = None,
    ) -> None:
        """Begins with `record`; its log is known to go to `known` at least."""
        policy = policy_of(call)
        self._by_url, self._base_url = policy.by_url, policy.base_url
        self._follower = follower
        self._task_id = record.id
        self._context_id = record.context_id
        self._state, self._since = record.state, now()
        self._ends_at = ends_at
        self._over = record.state in ends_at and known <= record.last_seq
        self._first: Frame | None = Frame(record.last_seq, SendResult(record, history_length).payload())
        self._ready: list[Event] = []
        follower.begin(record.last_seq, known)

    def __aiter__(self) -> TaskStream:
        return self

    async def __anext__(self) -> Frame:
        frame, self._first = self._first, None
        if frame is None:
            if not self._ready:
                if self._over:
                    raise StopAsyncIteration
                self._take(await self._follower.next(settings.KEEP_ALIVE_SECONDS))
                if not self._ready:
                    return _KEEP_ALIVE
            event = self._ready.pop(0)
            frame = Frame(event.seq, event.payload(self._task_id, self._context_id))
        if frame.payload is not None and MARK in frame.payload:
            # Files are read for each reader when its turn has come: they are in memory for nobody who is not there yet.
            frame.payload = await restored(StreamResponse, frame.payload, Policy(self._by_url, self._base_url))
        return frame

    async def aclose(self) -> None:
        """Read no more."""
        self._follower.close()

    @property
    def at_hand(self) -> bool:
        """Whether the next frame is there, so that nobody waits for it."""
        return bool(self._ready)

    @property
    def first_seq(self) -> int:
        """The seq of the first frame, as long as it has not been asked for."""
        assert self._first is not None
        return self._first.seq

    @property
    def interrupted(self) -> bool:
        """Whether the host stops before the task is where the stream ends."""
        return self._follower.stopping and not self._over

    def _take(self, events: list[Event]) -> None:
        if not events:
            self._waited()
        for event in events:
            self._ready.append(event)
            if event.kind is EventKind.MESSAGE:
                self._state = TaskState.UNSPECIFIED
            elif event.state is not None:
                self._state, self._since = event.state, event.created_at
            if self._state in self._ends_at:
                self._over = True
                return

    def _waited(self) -> None:
        if self._follower.ended:
            raise StopAsyncIteration
        if self._state is TaskState.AUTH_REQUIRED and (now() - self._since).total_seconds() > AUTH_WAIT_SECONDS:
            raise StopAsyncIteration


async def stream_message(call: Call, request: SendMessageRequest) -> TaskStream:
    """Take a message in; the stream gives the Task and its events, or the one Message.

    A message that was accepted before attaches to its task, with `call.resume_after` where the caller was.
    Raises UnsupportedOperationError for an agent without streaming and what `accept_message` raises, before a frame.
    """
    _check_streaming(call)
    accepted = await accept_message(call, request, acknowledged=not call.runs_here)
    record = accepted.record.copy()  # before the agent's first update, so that every stream tells the whole story
    configuration = request.configuration
    history_length = None if configuration is UNSET else configuration.history_length
    follower = call.host.hub.follow(record.id)
    try:
        record, known = await _beginning(call, accepted, record)
        return TaskStream(call, follower, record, known, _SEND_ENDS_AT, history_length)
    except BaseException:
        follower.close()
        raise


async def _beginning(call: Call, accepted: Accepted, record: TaskRecord) -> tuple[TaskRecord, int]:
    """(the task to begin with, how far its log goes now)."""
    execution = accepted.execution
    if accepted.repeated:
        stored = await call.load_accepted(record.id)
        return await _resumed(call, stored), stored.last_seq
    if execution is None:
        return record, await _log_end(call, record)
    if await answers_with_message(execution):
        await execution.settled()
        record = execution.snapshot()
    return record, execution.record.last_seq


async def _log_end(call: Call, record: TaskRecord) -> int:
    """How far the log of a task goes now. A database that is away is no reason to refuse what is stored: the hub looks
    for what was missed."""
    try:
        return (await call.load_accepted(record.id)).last_seq
    except UnavailableError:
        return record.last_seq


async def subscribe_to_task(call: Call, request: SubscribeToTaskRequest) -> TaskStream:
    """Follow a running task. With `call.resume_after` the first Task is the task as it was at that seq.

    Raises UnsupportedOperationError for an agent without streaming, TaskNotFoundError, and UnsupportedOperationError
    for a task that has ended (§3.1.6), unless the caller comes back for events that it missed.
    """
    return await _follow(call, request, _SUBSCRIPTION_ENDS_AT, ended_too=False)


async def resubscribe_to_task(call: Call, request: SubscribeToTaskRequest) -> TaskStream:
    """The same in 0.3: it ends where the first stream does, and of a task that has ended it is that task (0.3 §7.9,
    TaskSubscription in its protobuf definition).

    Raises UnsupportedOperationError for an agent without streaming, TaskNotFoundError.
    """
    return await _follow(call, request, _SEND_ENDS_AT, ended_too=True)


async def _follow(
    call: Call, request: SubscribeToTaskRequest, ends_at: frozenset[TaskState], ended_too: bool
) -> TaskStream:
    _check_streaming(call)
    follower = call.host.hub.follow(request.id)
    try:
        after = call.resume_after
        record = await call.load_task(request.id, None if after is None or after < 0 else after)
        if record.state.terminal and not ended_too and not _missed(call, record):
            raise UnsupportedOperationError(
                f"The task is {record.state}; there is nothing to subscribe to.",
                {"taskId": record.id, "state": str(record.state)},
            )
        return TaskStream(call, follower, await _resumed(call, record), record.last_seq, ends_at)
    except BaseException:
        follower.close()
        raise


async def _resumed(call: Call, record: TaskRecord) -> TaskRecord:
    """The task as it was at the event that the caller names, or as it is if its log has nothing beyond that."""
    after = call.resume_after
    if after is None or not _missed(call, record) or record.state is TaskState.UNSPECIFIED:
        return record
    return task_at(record, after, await call.host.store.past(record.id))


def _missed(call: Call, record: TaskRecord) -> bool:
    """Whether the log goes on after the event that the caller names as its last one."""
    return call.resume_after is not None and 0 <= call.resume_after < record.last_seq


def _check_streaming(call: Call) -> None:
    if not call.entry.streaming:
        raise UnsupportedOperationError("The agent does not support streaming.")
