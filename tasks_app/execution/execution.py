"""One run of an agent for one task: how it begins, is limited, waits, is cancelled, and ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from msgspec import UNSET, Raw, UnsetType

from agents.registry import AgentEntry
from agents.runtimes.base import Answer, Run
from agents.runtimes.current import Inside
from agents.runtimes.errors import NO_ANSWER_TEXT
from protocol.errors import InvalidAgentResponseError
from protocol.ids import new_id
from protocol.model import Artifact, Message, Part, Role
from protocol.states import INTERRUPTED, RUNNING, TaskState, may_move
from protocol.timestamps import now
from tasks_app.content.keeping import has_big
from tasks_app.content.running import (
    H,
    InputMissingError,
    OutputRefusedError,
    fill_input,
    holds_stored,
    keep_output,
)
from tasks_app.execution.attempt import FAILED_TEXT, Attempt
from tasks_app.execution.draft import TaskDraft
from tasks_app.execution.waiting import Waits
from tasks_app.journal import Journal
from tasks_app.tables.record import TaskRecord
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

UNFINISHED_TEXT = "The agent ended without a result."
TIMEOUT_TEXT = "The agent took longer than its time limit."
REFUSED_TEXT = "The authorization was refused by {}."
OVERDUE_TEXT = "The task was not done by its deadline."
STOPPED_TEXT = "The host was stopped before the agent had finished."


class Execution(Attempt):
    """The agent's code at work for one attempt; implements `agents.runtimes.base.Updates`.

    `acknowledged` means that the caller was given a task already, so a Message answer becomes the message of COMPLETED.
    """

    def __init__(
        self,
        entry: AgentEntry,
        run: Run,
        record: TaskRecord,
        journal: Journal,
        store: Store,
        waits: Waits,
        ended: Callable[[Execution], None],
        repeated_from: int = 0,
    ) -> None:
        super().__init__(record, journal, timedelta(seconds=entry.deadline_seconds), repeated_from)
        self.entry = entry
        self.acknowledged = False
        self._run = run
        self._store = store
        self._waits = waits
        self._answer: asyncio.Future[Answer] | None = None
        self._waited = False
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._cancelling = False
        self._in_agent = False
        self._failure = FAILED_TEXT

    # --- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Run the agent's code, as a task of its own that no caller's connection can end."""
        self._task = asyncio.create_task(self._execute(), name=f"run {self.record.id}")

    async def cancel(self) -> bool:
        """Stop the agent's code and let it say CANCELED, or say so for it (§3.1.5).

        Returns whether the task has ended; False means that the code ignores the request beyond its grace time.
        """
        if not self._cancelling and self._task is not None:
            self._cancelling = True
            self._task.cancel()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self.entry.cancel_grace_seconds)
        return self.record.state.terminal

    @property
    def cancelling(self) -> bool:
        """Whether somebody has asked for its end."""
        return self._cancelling

    def fence(self) -> None:
        """Another attempt owns the task: its code is stopped, and nothing that it says may be written any more."""
        super().fence()
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """The host stops: end the run and FAIL the task."""
        self._failure = STOPPED_TEXT
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1)

    async def leave(self) -> bool:
        """The host stops, and another process may repeat the run: end it without a word.

        Returns whether the task is unfinished then, as far as this run has written it.
        """
        self.fence()
        while self._writing:
            await self._idle.wait()
        return self.record.state in RUNNING

    async def _execute(self) -> None:
        inside = Inside(self._run, self)
        try:
            try:
                await self._execute_agent()
            except asyncio.CancelledError:
                if self._fenced:
                    raise
                if not self._cancelling and self._draft.state in RUNNING:  # who waits for its caller may go on waiting
                    self._fail(self._failure)
            if self._cancelling and not self._fenced and not self._draft.state.terminal:
                await self._cancel_agent()
            self._finish()
            await self._drained()
            if self._waited and not self.record.state.terminal:
                await self._waits.end(self.record)
        finally:
            if self._fenced or self.record.state not in INTERRUPTED:  # Then what it left behind may go on delegating.
                inside.leave()
            self._ended(self)

    async def _execute_agent(self) -> None:
        self._in_agent = True
        self._limit_time()
        try:
            await self._fill()
            answered = self._run.answered
            if answered is None or answered.approved is not False or self.entry.runtime.decides_refusals:
                await self.entry.runtime.execute(self._run, self)
            else:
                self._refuse(answered.by)
        except Exception:
            logger.exception("Agent %s failed on task %s", self.entry.slug, self.record.id)
            if not self._cancelling:  # Then it has stopped, as it was asked to.
                self._fail(self._failure)
        finally:
            self._in_agent = False
            self._limit.cancel()

    def _limit_time(self) -> None:
        seconds, end = float(self.entry.timeout_seconds), self._stop_late_agent
        if self.record.deadline_at is not None:
            left = (self.record.deadline_at - now()).total_seconds()
            if left < seconds:
                seconds, end = max(left, 0.0), self._stop_overdue_agent
        self._limit = asyncio.get_running_loop().call_later(seconds, end)

    def _stop_overdue_agent(self) -> None:
        """Whatever the agent still says comes too late."""
        if self._draft.state in RUNNING:
            logger.warning("Agent %s: task %s is overdue", self.entry.slug, self.record.id)
            self._fail(OVERDUE_TEXT)
            if self._task is not None:
                self._task.cancel()
        else:
            loop = asyncio.get_running_loop()
            self._limit = loop.call_later(self.entry.timeout_seconds, self._stop_late_agent)

    def _refuse(self, by: str) -> None:
        """Code that takes any follow-up for a consent is not told of a refusal."""
        message = Message(message_id=new_id(), role=Role.AGENT, parts=[Part(text=REFUSED_TEXT.format(by))])
        self._draft.move(TaskState.REJECTED, message)
        self._accepted()

    async def _fill(self) -> None:
        """Give the agent the content of what is kept in files. Raises InputMissingError."""
        run = self._run
        if run.task is not None or holds_stored(run.message.parts):
            try:
                await fill_input(run.message, run.task)
            except InputMissingError as error:
                self._failure = str(error)
                raise

    def _stop_late_agent(self) -> None:
        """The time is up. Code that swallows its cancellation goes on, without a task: what it says is refused."""
        logger.warning("Agent %s: task %s took too long", self.entry.slug, self.record.id)
        self._failure = TIMEOUT_TEXT
        if self._task is not None:
            self._task.cancel()
        loop = asyncio.get_running_loop()
        self._limit = loop.call_later(self.entry.cancel_grace_seconds, self._fail, TIMEOUT_TEXT)

    async def _cancel_agent(self) -> None:
        try:
            async with asyncio.timeout(self.entry.cancel_grace_seconds):
                await self._fill()
                await self.entry.runtime.cancel(self._run, self)
        except Exception:
            logger.exception("Agent %s failed to cancel task %s", self.entry.slug, self.record.id)
        if may_move(self._draft.state, TaskState.CANCELED):
            self._draft.move(TaskState.CANCELED)
            self._accepted()

    def _finish(self) -> None:
        """Nothing stays WORKING because an agent forgot to say how it ended."""
        if self._draft.state in RUNNING:
            logger.warning("Agent %s ended task %s in %s", self.entry.slug, self.record.id, self._draft.state)
            self._fail(UNFINISHED_TEXT)

    # --- updates of the agent (agents.runtimes.base.Updates) -----------------------------------

    async def status(self, state: TaskState, message: Message | None = None, metadata: Raw | UnsetType = UNSET) -> None:
        """Move the task to `state`."""
        self._check_fence()
        if message is not None and has_big(message.parts):
            message = await self._with_files(message)
        self._draft.move(state, message, metadata)
        self._accepted()
        if self._is_ahead:
            await self._drained()

    async def artifact(
        self,
        artifact: Artifact,
        *,
        append: bool = False,
        last_chunk: bool = False,
        metadata: Raw | UnsetType = UNSET,
    ) -> None:
        """Add or replace an artifact, or append parts to it (§4.2.2)."""
        self._check_fence()
        if has_big(artifact.parts):
            artifact = await self._with_files(artifact)
        self._draft.add_artifact(artifact, append, last_chunk, metadata)
        self._accepted()
        if self._is_ahead:
            await self._drained()

    async def reply(self, message: Message) -> None:
        """Answer with a Message and no task (§3.1.1)."""
        self._check_fence()
        if has_big(message.parts):
            message = await self._with_files(message)
        if self.acknowledged:
            self._draft.move(TaskState.COMPLETED, message)
        else:
            self._draft.reply(message)
        self._accepted()

    # --- waiting for the next message ----------------------------------------------------------

    async def answer(self) -> Answer:
        """Wait for the next message of an interrupted task, in this process."""
        self._check_fence()
        if self._draft.state not in INTERRUPTED:
            raise InvalidAgentResponseError(f"A task that is {self._draft.state} waits for no answer.")
        if not self._in_agent:
            raise InvalidAgentResponseError(NO_ANSWER_TEXT)
        self._limit.cancel()
        self._answer = asyncio.get_running_loop().create_future()
        try:
            await self._drained()
            if self._fenced or not await self._waits.begin(self.record):
                self.fence()
                raise asyncio.CancelledError
            self._waited = True
            answer = await self._answer
            await fill_input(answer.message)
            return answer
        finally:
            self._answer = None
            self._limit_time()

    @property
    def waits(self) -> bool:
        """Whether the run waits for a message, which `resume` may hand to it."""
        return self._answer is not None and not self._answer.done() and not self._fenced

    def resume(self, record: TaskRecord, answer: Answer) -> None:
        """The run goes on with an answer, under the attempt of `record`."""
        assert self._answer is not None
        self.record, self._draft, self._repeated_from = record, TaskDraft(record), 0
        self._run.attempt = record.attempt
        self._waited = False
        self.first_update = asyncio.get_running_loop().create_future()
        self._answer.set_result(answer)

    async def _with_files(self, said: H) -> H:
        """What the agent says, with its big parts in files. What cannot be stored FAILS the task, and says why."""
        try:
            kept = await keep_output(self._store, self.entry, self.record.id, said)
        except OutputRefusedError as error:
            self._fail(str(error))
            raise
        self._check_fence()
        self._draft.has_stored_parts = True
        return kept

    @property
    def lost(self) -> bool:
        """Whether a heartbeat that did not find this run means that another attempt owns the task."""
        idle = not self._writing and not self._draft.events
        return idle and (self.record.state in RUNNING or (self.record.state in INTERRUPTED and not self.waits))

    def _deadline_moved(self) -> None:
        if self._in_agent:
            self._limit.cancel()
            self._limit_time()

    def _nothing_stored(self) -> None:
        if self._in_agent and self._task is not None:
            self._task.cancel()

    def _check_fence(self) -> None:
        if self._fenced:
            raise asyncio.CancelledError
        if self._answer is not None:
            raise InvalidAgentResponseError("A run that waits for an answer reports nothing meanwhile.")
