"""Everything of a process that lives as long as its event loop: reader, journal, hub, listener, and what runs here."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from agents.access import flush_last_used
from agents.outbound.rules import OutboundRules
from agents.registry import CHANNEL as AGENTS_CHANNEL
from agents.registry import AgentEntry, Registry
from agents.runtimes.base import Answered, Caller, Delegations, Run
from protocol.errors import UnavailableError
from protocol.model import Task
from protocol.requests import SendMessageRequest
from protocol.states import FRUITLESS, RUNNING
from tasks_app.content.running import fill_input
from tasks_app.execution.doorbell import Doorbell
from tasks_app.execution.execution import Execution
from tasks_app.execution.heartbeat import Heartbeat, Pulse, take_pulse
from tasks_app.execution.lasting import Lasting
from tasks_app.execution.turn import task_of
from tasks_app.execution.waiting import ANSWER_CHANNEL, Waits
from tasks_app.journal import Change, Journal
from tasks_app.journal.leases import CONTROL_CHANNEL, QUEUE_CHANNEL, request_cancels
from tasks_app.journal.preparing import CHANNEL as EVENTS_CHANNEL
from tasks_app.journal.writer import Write
from tasks_app.live.hub import Hub
from tasks_app.live.listener import Listener
from tasks_app.live.refreshing import Refreshing
from tasks_app.tables.busy_poll import processors
from tasks_app.tables.database import database_dsn
from tasks_app.tables.record import TaskRecord
from tasks_app.tables.store import Store
from tasks_app.tables.together import Together
from tasks_app.tables.usage import Usage

logger = logging.getLogger(__name__)

_SHUTDOWN_GRACE_SECONDS = settings.SHUTDOWN_GRACE_SECONDS
_LAST_USED_SECONDS = 60.0


@dataclass(slots=True)
class Behaviours:
    """What is built on a host and called from it and from what stands below: `delegations` of the runs,
    `on_fruitless` for tasks that ended without a result, `on_cancel` for a task of this process that somebody wants
    cancelled, `on_answer` for one that was given to this process, `take_queued` to run a queued task (id, attempt)
    here, `room` for how many more could begin, `hand_back` for runs (task id, attempt) that are left to other
    processes, `sweep`, one look for tasks that nobody runs, and `cancel_orphans`, one for children without a parent.
    """

    delegations: Delegations
    on_fruitless: Callable[[Sequence[str]], Coroutine[Any, Any, None]]
    on_cancel: Callable[[str], Coroutine[Any, Any, None]]
    on_answer: Callable[[str], Coroutine[Any, Any, None]]
    take_queued: Callable[[str, int], None]
    room: Callable[[], int]
    hand_back: Callable[[Sequence[tuple[str, int]]], Coroutine[Any, Any, None]]
    sweep: Callable[[], Coroutine[Any, Any, int]]
    cancel_orphans: Callable[[], Coroutine[Any, Any, None]]


class Host:
    """One per process and event loop. `role` names the agents whose code runs here: "web" or "worker".

    Made by `tasks_app.processes.process.make_host`, which knows what `behaviours` builds on it.
    """

    def __init__(self, role: str, behaviours: Callable[[Host], Behaviours]) -> None:
        dsn = database_dsn()
        poll_seconds = _busy_poll_seconds(role)
        self.role = role
        self.origin = f"{role}-{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(3)}"
        self.lasting = Lasting()
        self.registry = Registry(runs=role)
        self.store = Store(dsn, poll_seconds)
        self.refreshing = Refreshing(self.registry, self.store)
        self.hub = Hub(self.store, self.origin)
        self.journal = Journal(dsn, self.origin, self._published, poll_seconds)
        self.listener = Listener(dsn, self._caught_up)
        self.doorbell = Doorbell()
        self.outbound = OutboundRules.from_settings()
        self.usage = Usage(self.store.pool)
        self.waits = Waits(self.store, self.origin)
        self.cancel_requests = Together(partial(request_cancels, self.store))  # for runs in other processes
        self.executions: dict[str, Execution] = {}
        self.draining = False  # whether the process ends and begins no more runs
        self.called = asyncio.Event()  # set when there is something to look for
        self.heartbeat = Heartbeat(dsn, self.origin, role, lambda: list(self.executions.values()), self._heard)
        self._background: set[asyncio.Task[Any]] = set()
        self._last_used: asyncio.Task[None] | None = None
        self.behaviours = behaviours(self)

    async def start(self) -> None:
        """Connect and listen; raises `psycopg.OperationalError` or `PoolTimeout` without a database."""
        self._loop = asyncio.get_running_loop()
        await self.store.start()
        await self.registry.load()
        self.lasting.keep(*await self.journal.start())
        self.listener.on(EVENTS_CHANNEL, self.hub.notified)
        self.listener.on(AGENTS_CHANNEL, self.refreshing.announced)
        self.listener.on(CONTROL_CHANNEL, self._cancel_asked)
        self.listener.on(QUEUE_CHANNEL, lambda _: self.called.set())
        self.listener.on(ANSWER_CHANNEL, self._answer_told)
        self.lasting.keep(await self.listener.start(), self.hub.start())
        self.doorbell.start()
        self._last_used = asyncio.create_task(self._flush_last_used(), name="last used")
        self.lasting.keep(self.refreshing.start(), self.usage.start(), self._last_used)

    async def stop(self) -> None:
        """End runs and streams, write everything, close."""
        self.lasting.over = True
        await self.end_runs()
        self.heartbeat.stop()
        for task in [*self._background, *([self._last_used] if self._last_used else [])]:
            task.cancel()
        self.doorbell.stop()
        self.refreshing.stop()
        await self.listener.stop()
        await self.hub.stop()
        await self.journal.stop()
        await self.usage.stop()
        await self.cancel_requests.stop()
        await self.store.stop()

    async def end_runs(self) -> None:
        """Begin no more runs, let those here finish for a while, leave to others what may be repeated, FAIL the rest;
        then end the streams: callers hear how it went."""
        self.draining = True
        await asyncio.gather(*(e.stop() for e in self.executions.values() if e.waits))  # Answers go to others now.
        waits = [*(e.settled() for e in self.executions.values()), self.hub.nobody_waits()]
        await asyncio.wait([asyncio.ensure_future(wait) for wait in waits], timeout=_SHUTDOWN_GRACE_SECONDS)
        running = [e for e in self.executions.values() if e.record.state in RUNNING]
        await self._hand_back([e for e in running if e.entry.max_retries])
        await asyncio.gather(*(e.stop() for e in list(self.executions.values())))
        self.hub.end()

    async def _hand_back(self, runs: Sequence[Execution]) -> None:
        left = await asyncio.gather(*(e.leave() for e in runs))
        given_up = [(e.record.id, e.record.attempt) for e, running in zip(runs, left, strict=True) if running]
        try:
            await self.behaviours.hand_back(given_up)
        except UnavailableError:
            logger.warning("%d runs could not be handed back; they will be missed in time", len(given_up))
        except Exception:  # Stopping goes on, whatever it is.
            logger.exception("%d runs could not be handed back; they will be missed in time", len(given_up))

    def execute(
        self,
        entry: AgentEntry,
        record: TaskRecord,
        request: SendMessageRequest,
        caller: Caller,
        extensions: frozenset[str],
        answered: Answered | None = None,
        begun: TaskRecord | None = None,
        repeated_from: int = 0,
    ) -> Execution:
        """Start the newest turn of a task in this process, under the attempt that the record names.

        Where runs of the turn were lost before, `begun` is the task as it was when the turn began, and `repeated_from`
        the first of these runs.
        """
        before = begun or record
        run = Run(
            agent_slug=entry.slug,
            task_id=record.id,
            context_id=record.context_id,
            request=request,
            caller=caller,
            task=task_of(before) if len(before.history) > 1 else None,
            load_related=lambda: self._related(record, request.message.reference_task_ids),
            delegations=self.behaviours.delegations,
            attempt=record.attempt,
            extensions=extensions,
            answered=answered,
        )
        older = self.executions.get(record.id)
        if older is not None:
            older.fence()
        execution = Execution(entry, run, record, self.journal, self.store, self.waits, self._ended, repeated_from)
        self.executions[record.id] = execution
        execution.start()
        return execution

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine in the background; its failure is logged."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background_ended)

    def _background_ended(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("A background job failed", exc_info=task.exception())

    def _ended(self, execution: Execution) -> None:
        if self.executions.get(execution.record.id) is execution:
            del self.executions[execution.record.id]

    def _published(self, writes: Sequence[Write]) -> None:
        fruitless: list[str] = []
        for write in writes:
            self.hub.publish(write.task_id, write.events if isinstance(write, Change) else [])
            if isinstance(write, Change) and write.has_push_configs and write.events:
                self.doorbell.ring_for_push(write.task_id)
            if isinstance(write, Change) and write.state in FRUITLESS:
                fruitless.append(write.task_id)
        if fruitless:
            self.spawn(self.behaviours.on_fruitless(fruitless))

    async def _related(self, record: TaskRecord, ids: Sequence[str]) -> list[Task]:
        """The tasks that a message refers to, as far as its sender may see them."""
        found = await self.store.load_many(ids)
        tasks = [
            task_of(r) for i in ids if (r := found.get(i)) is not None and may_see(r, record.agent_id, record.owner)
        ]
        await fill_input(*tasks)
        return tasks

    def _heard(self, pulse: Pulse) -> None:
        self._loop.call_soon_threadsafe(take_pulse, pulse)

    def _cancel_asked(self, task_id: str) -> None:
        execution = self.executions.get(task_id)
        if execution is not None and not execution.cancelling:
            self.spawn(self.behaviours.on_cancel(task_id))

    def _answer_told(self, payload: str) -> None:
        origin, _, task_id = payload.partition(" ")
        if origin == self.origin:
            self.spawn(self.behaviours.on_answer(task_id))

    async def _caught_up(self) -> None:
        await self.registry.load()
        await self.hub.refresh_all()

    async def _flush_last_used(self) -> None:
        while True:
            await asyncio.sleep(_LAST_USED_SECONDS)
            try:
                await flush_last_used(self.registry)
            except Exception as error:
                logger.warning("The use of API keys was not noted: %s", type(error).__name__)


def _busy_poll_seconds(role: str) -> float:
    """A worker leaves the processor to agents; with a single one, waiting would keep the database from answering."""
    return settings.BUSY_POLL_MICROSECONDS / 1e6 if role != "worker" and processors() >= 2 else 0.0


def may_see(record: TaskRecord, agent_id: int, owner: str) -> bool:
    """Whether a caller of an agent may know of a task: everything else looks absent (§13.1)."""
    return record.agent_id == agent_id and record.owner == owner and record.state is not record.state.UNSPECIFIED
