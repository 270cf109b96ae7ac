"""Group commit: whatever is waiting goes into one statement, one round trip and one commit.

Guarantees:
- a future is answered after the commit, so no event leaves the process before it is stored;
- a batch is in flight alone, and a task's next write waits for the one that it builds on: their order holds;
- a batch that the database refuses is sent again one by one, so only the culprit gets the error; not where another try
  may be taken, so that a write which meets a limit of the server each time, as of memory, holds up those after it;
- after a broken connection the outcome of the batch is read back before anything is sent again, and after the statement
  has ended that may go on without it: nothing is written twice, and nothing that was written is reported as lost;
- while the database takes nothing (it is away, full, read-only), changes of stored tasks wait; new tasks, and verdicts
  on runs that nobody holds, are refused after some seconds. One whose outcome is open waits until the database tells.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import psycopg

from protocol.errors import A2AError, InternalError, UnavailableError
from tasks_app.journal import outcome, statement
from tasks_app.journal.changes import Change, Creation
from tasks_app.journal.preparing import prepare
from tasks_app.journal.trouble import Trouble, leaves_outcome_open
from tasks_app.tables.link import Link, NotSentError
from tasks_app.tables.passing import may_pass

logger = logging.getLogger(__name__)

BATCH_ROWS = 256
BATCH_CHARACTERS = 4_000_000
ENOUGH_ROWS = 8
"""So many wait neither for more that the same turn of the loop may bring, nor until the batch before them is answered:
the database works on them meanwhile."""
_CREATION_PATIENCE = 5.0  # seconds without a write after which a new task is refused, not kept waiting
_RETRY_SECONDS = 0.25
_LOOK_SECONDS = 0.25

_UNLIMITED = "a2a_unlimited"
# A write that takes too long would do so again. What the server does not know is left out: the last came with 17.
_UNLIMIT = """SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout')"""
_COUNTING = "a2a_counting"
_STATEMENTS = statement.STATEMENTS | outcome.STATEMENTS | {_UNLIMITED: _UNLIMIT, _COUNTING: statement.COUNTS}

Write = Creation | Change


class Journal:
    """One writer for one process and event loop. `origin` names the process in notifications. For `poll_seconds` at
    most it polls for a commit instead of sleeping."""

    def __init__(
        self, dsn: str, origin: str, published: Callable[[Sequence[Write]], None], poll_seconds: float = 0
    ) -> None:
        self._dsn = dsn
        self._origin = origin
        self._published = published
        self._poll_seconds = poll_seconds
        self._waiting: deque[Write] = deque()
        self._busy = False  # whether a batch is under way, or about to be
        self._sent = False  # whether it is under way
        self._link: Link | None = None
        self._backend = ""  # of the connection that was opened last
        self._trouble: Trouble | None = None
        self._mender: asyncio.Task[None] | None = None
        self._clock: asyncio.Task[None] | None = None
        self._closing = False

    async def start(self) -> Sequence[asyncio.Task[None]]:
        """Connect and begin to write; gives the tasks that it cannot do without."""
        self._loop = asyncio.get_running_loop()
        self._link = await self._connect()
        self._failed = self._loop.create_future()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._mender = asyncio.create_task(self._mend_forever(), name="journal")
        self._mender.add_done_callback(self._close)
        self._clock = asyncio.create_task(self._refuse_in_time(), name="journal's clock")
        return self._mender, self._clock

    async def stop(self) -> None:
        """Write what is waiting, then close."""
        self._close()
        if self._mender is not None and self._clock is not None:
            written = asyncio.create_task(self._quiet.wait())
            await asyncio.wait({written, self._mender}, return_when=asyncio.FIRST_COMPLETED)
            for task in (written, self._mender, self._clock):
                task.cancel()
        await self._disconnect()

    def _close(self, *_: object) -> None:
        self._closing = True

    def submit(self, write: Write) -> asyncio.Future[bool]:
        """Queue a write. Its future tells, after the commit, whether it was won. It raises `UnavailableError` for a
        creation, or a change `if_unheld`, that the database could not take in time, `InternalError` for a write that it
        refuses.
        """
        if self._closing:
            self._refuse(write, UnavailableError(retry_after=1))
        else:
            self._waiting.append(write)
            if not self._busy:
                self._busy = True
                self._quiet.clear()
                self._loop.call_soon(self._write)  # with what else comes in this turn of the loop
            elif not self._sent and len(self._waiting) >= ENOUGH_ROWS:
                self._write()
        return write.done

    async def _connect(self) -> Link:
        link = await Link.open(self._dsn, _STATEMENTS, poll_seconds=self._poll_seconds)
        try:
            await link.execute(_UNLIMITED, [])
            await link.execute(_COUNTING, [])
            self._backend = str((await link.execute(outcome.BACKEND, []))[0])
        except BaseException:
            await link.close()
            raise
        return link

    async def _disconnect(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _write(self) -> None:
        """Send the next batch, in callbacks: for one write, tasks would cost as much as the database."""
        if self._sent:
            return
        if not self._waiting:
            if self._trouble is not None:
                self._trouble.forget()
                self._trouble = None
            self._busy = False
            self._quiet.set()
            return
        batch = self._take()
        self._sent = True
        try:
            self._connected().ask(*prepare(self._origin, batch), partial(self._written, batch))
        except Exception as error:
            self._written(batch, error)

    def _written(self, batch: list[Write], ids: Sequence[str | None] | Exception) -> None:
        if isinstance(ids, Exception):
            self._failed.set_result((batch, ids))
            return
        self._end_trouble()
        at_once = len(self._waiting) >= ENOUGH_ROWS
        if at_once:
            self._sent = False
            self._write()
        try:
            self._answer(batch, ids)
        except Exception as error:
            self._failed.set_exception(error)
            return
        if not at_once:
            self._sent = False
            self._loop.call_soon(self._write)  # with what those say who go on now

    def _take(self) -> list[Write]:
        """The next batch. Rivals for one version of a task come one after the other: a statement could not tell them
        apart."""
        batch: list[Write] = []
        rivals: list[Write] = []
        tasks: set[str] = set()
        size = 0
        while self._waiting and len(batch) < BATCH_ROWS and size < BATCH_CHARACTERS:
            write = self._waiting.popleft()
            if write.task_id in tasks:
                rivals.append(write)
                continue
            tasks.add(write.task_id)
            size += _characters(write)
            batch.append(write)
        self._waiting.extendleft(reversed(rivals))
        return batch

    async def _mend_forever(self) -> None:
        """Take over where a batch failed, until its writes are settled."""
        while True:
            batch, error = await self._failed
            self._failed = self._loop.create_future()
            await self._mend(batch, error)
            self._sent = False
            self._write()

    async def _mend(self, batch: list[Write], error: Exception) -> None:
        """Write a batch that met an error, whatever it takes, and answer every future in it."""
        while batch:
            if not (isinstance(error, psycopg.Error) and may_pass(error)):
                await self._one_by_one(batch, error)
                return
            batch = await self._recover(batch, error)
            if batch:
                try:
                    ids = await self._execute(batch)
                except Exception as again:
                    error = again
                else:
                    self._end_trouble()
                    self._answer(batch, ids)
                    return

    async def _execute(self, batch: Sequence[Write]) -> Sequence[str | None]:
        return await self._connected().execute(*prepare(self._origin, batch))

    def _connected(self) -> Link:
        if self._link is None:
            raise NotSentError("the journal is not connected")
        return self._link

    def _end_trouble(self) -> None:
        if self._trouble is not None:
            self._trouble.end()
            self._trouble = None

    def _answer(self, batch: Sequence[Write], ids: Sequence[str | None]) -> None:
        """Tell whom it concerns, in the order that `Change.stored` promises. `ids` are of those that were won."""
        won = {task_id for task_id in ids if task_id is not None}
        for write in batch:
            if isinstance(write, Change):
                write.has_push_configs = statement.PUSH_MARK + write.task_id in won
                if write.stored is not None:
                    write.stored(write.task_id in won)
        self._published([w for w in batch if w.task_id in won])
        for write in batch:
            if not write.done.done():
                write.done.set_result(write.task_id in won)

    def _refuse(self, write: Write, error: A2AError) -> None:
        if isinstance(write, Change) and write.stored is not None:
            write.stored(None)
        if not write.done.done():
            write.done.set_exception(error)

    async def _one_by_one(self, batch: Sequence[Write], error: Exception) -> None:
        """The database refused a batch: find the write that it means."""
        if len(batch) == 1:
            logger.error("The database refused to store task %s", batch[0].task_id, exc_info=error)
            self._refuse(batch[0], InternalError())
            return
        for write in batch:
            try:
                ids = await self._execute([write])
            except Exception as again:
                await self._mend([write], again)
            else:
                self._end_trouble()
                self._answer([write], ids)

    async def _recover(self, batch: list[Write], error: psycopg.Error) -> list[Write]:
        """Reconnect, at first at once and then with a pause before each try; answer the writes that were stored after
        all, refuse what has waited for too long and may be refused, and return what is to be sent again.

        The connection is a new one even if the server has answered: another one may lead to a server that takes writes.
        """
        open_outcome = leaves_outcome_open(error)
        while True:
            at_once, self._trouble = self._trouble is None, self._trouble or Trouble()
            self._trouble.note(error)
            if self._trouble.seconds >= _CREATION_PATIENCE:
                self._refuse_waiting()
                if not open_outcome:
                    batch = self._without_refusable(batch)
            if not at_once:
                await asyncio.sleep(_RETRY_SECONDS)
            try:
                await self._disconnect()
                if open_outcome:
                    batch = await self._read_back(batch)
                    open_outcome = False
                self._link = await self._connect()
            except psycopg.Error as again:
                error = again
            else:
                return batch

    async def _refuse_in_time(self) -> None:
        """New tasks do not wait for a statement or a connection of which nothing is heard."""
        loop = asyncio.get_running_loop()
        first: Write | None = None
        since = loop.time()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            head = self._waiting[0] if self._waiting else None
            if head is not first:
                first, since = head, loop.time()
            elif head is not None and loop.time() - since >= _CREATION_PATIENCE:
                self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        self._waiting = deque(self._without_refusable(self._waiting))

    def _without_refusable(self, writes: Iterable[Write]) -> list[Write]:
        """Refuse the new tasks among writes that are not stored, since nobody was told of them, and what was to happen
        to tasks that nobody holds: their processes could not say that they live. Other changes are left."""
        left: list[Write] = []
        for write in writes:
            if isinstance(write, Creation) or write.if_unheld:
                self._refuse(write, UnavailableError(retry_after=5))
            else:
                left.append(write)
        return left

    async def _read_back(self, batch: list[Write]) -> list[Write]:
        stored = await outcome.stored_writes(self._dsn, self._backend, batch)
        self._answer([w for w in batch if w.task_id in stored], [*stored])
        return [w for w in batch if w.task_id not in stored]


def _characters(write: Write) -> int:
    if isinstance(write, Creation):
        return len(write.message.body) + len(write.request)
    return sum(len(e.body) for e in write.events) + sum(len(m.body) for m in write.messages)
