"""What one attempt of a task has said, and what of it is stored.

Updates are accepted into a draft at once; whatever the draft holds when the previous write has been committed goes
into the next one. So a fast agent costs one commit, and a stream of small chunks coalesces by itself.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from protocol.ids import new_id
from protocol.model import Message, Part, Role
from protocol.states import INTERRUPTED, RUNNING, TaskState, may_move
from protocol.timestamps import now
from tasks_app.execution.draft import TaskDraft
from tasks_app.journal import Change, Journal
from tasks_app.tables.record import TaskRecord

logger = logging.getLogger(__name__)

_BUFFERED_EVENTS = 1000  # an agent that is this far ahead of the database waits

FAILED_TEXT = "The agent failed to process the message."


class Attempt:
    """The writer of one task, until another attempt is. `record` is the task as committed so far.

    `turn_lasts` is how long the agent has for a turn that begins without a message. What was said by attempts before
    event `repeated_from` is said again.
    """

    def __init__(self, record: TaskRecord, journal: Journal, turn_lasts: timedelta, repeated_from: int) -> None:
        self.record = record
        self.first_update: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._repeated_from = repeated_from
        self._draft = TaskDraft(record, repeated_from)
        self._journal = journal
        self._turn_lasts = turn_lasts
        self._fenced = False
        self._writing = False
        self._flush_scheduled = False
        self._idle = _Waiters()
        self._settled = _Waiters()

    async def settled(self) -> None:
        """Wait until the task is stored in a terminal or interrupted state, or this run was fenced off."""
        if not self._is_settled():
            await self._settled.wait()

    def fence(self) -> None:
        """Another attempt owns the task: nothing of this one may be written any more."""
        self._fenced = True
        self._draft.take()
        self._resolve_settled()

    @property
    def fenced(self) -> bool:
        """Whether another attempt owns the task."""
        return self._fenced

    @property
    def replied(self) -> bool:
        """Whether the agent answered with a Message, stored or about to be."""
        return self._draft.state is TaskState.UNSPECIFIED

    def snapshot(self) -> TaskRecord:
        """The task as committed now; later updates do not show in it."""
        return self.record if self.record.state.terminal else self.record.copy()

    # --- for the run ---------------------------------------------------------------------------

    def _fail(self, text: str) -> None:
        if may_move(self._draft.state, TaskState.FAILED):
            message = Message(message_id=new_id(), role=Role.AGENT, parts=[Part(text=text)])
            self._draft.move(TaskState.FAILED, message)
            self._accepted()

    def _accepted(self) -> None:
        if not self.first_update.done():
            self.first_update.set_result(None)
        if not self._writing and not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    @property
    def _is_ahead(self) -> bool:
        """Whether the agent has to wait for the database."""
        return len(self._draft.events) > _BUFFERED_EVENTS

    def _deadline_moved(self) -> None:
        """The record has another `deadline_at`."""

    def _nothing_stored(self) -> None:
        """The database does not take what was said, and the task has failed."""

    # --- storing -----------------------------------------------------------------------------

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._writing or self._fenced or not self._draft.events:
            self._wake_idle()
            return
        deadline_at = None
        if self.record.state in INTERRUPTED and self._draft.state in RUNNING:
            deadline_at = now() + self._turn_lasts  # It goes on by itself: a new turn.
        change = self._draft.change(self.record, self.record.worker, deadline_at=deadline_at)
        self._writing = True
        change.stored = lambda won: self._stored(change, won)
        self._journal.submit(change).add_done_callback(_seen)

    def _stored(self, change: Change, won: bool | None) -> None:
        change.stored = None  # It holds the change that holds it.
        self._writing = False
        if won:
            self.record.advance(change.events, [m.body for m in change.messages], change.metadata)
            if change.deadline_at is not None:
                self.record.deadline_at = change.deadline_at
                self._deadline_moved()
            if self._is_settled():
                self._resolve_settled()
        elif won is None and change.state is not TaskState.FAILED:
            self._give_up()
        else:
            logger.warning("Task %s: attempt %s may not write any more", change.task_id, change.attempt)
            self.fence()
        self._flush()

    def _give_up(self) -> None:
        """The database does not take what the agent said: the task fails as it was before that."""
        self._draft = TaskDraft(self.record, self._repeated_from)
        self._fail(FAILED_TEXT)
        self._nothing_stored()

    def _is_settled(self) -> bool:
        return self._fenced or self.record.state.settled or self.record.state is TaskState.UNSPECIFIED

    def _resolve_settled(self) -> None:
        self._settled.wake()
        if not self.first_update.done():
            self.first_update.set_result(None)

    def _wake_idle(self) -> None:
        if not self._writing:
            self._idle.wake()

    async def _drained(self) -> None:
        """Wait until everything accepted is stored or given up."""
        if self._flush_scheduled:
            self._flush()  # nothing more comes in this turn of the loop
        while not self._fenced and (self._writing or self._draft.events):
            await self._idle.wait()


class _Waiters:
    """Those who wait for one moment; each may give up without the others."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Return when somebody calls `wake`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        await future

    def wake(self) -> None:
        """Let everybody go who waits now."""
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():
                future.set_result(None)


def _seen(done: asyncio.Future[bool]) -> None:
    """The outcome came through `Change.stored`; an error of the journal is logged there."""
    if not done.cancelled():
        done.exception()
