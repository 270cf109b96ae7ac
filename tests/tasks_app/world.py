"""What the tests of tasks stand on: hosts in this process on the suite's PostgreSQL, and agents made of functions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import psycopg
from django.db import connections

from agents.registration import register_agent
from agents.registry import AgentEntry
from agents.runtimes.base import Caller, Run, Runtime, Updates
from agents.runtimes.factory import RuntimeSlot
from agents.threads import in_thread
from protocol.model import Artifact, Message, Part, Role, TaskPushNotificationConfig
from protocol.requests import SendMessageConfiguration, SendMessageRequest
from protocol.states import TaskState
from tasks_app.execution.heartbeat import take_pulse
from tasks_app.execution.host import Host
from tasks_app.operations import Call
from tasks_app.processes.process import make_host
from tasks_app.tables.record import TaskRecord

PATIENCE = 20.0
"""Seconds that anything here may take on a busy machine."""
ALICE, BOB = "alice", "bob"

Act = Callable[[Run, Updates], Awaitable[None]]
_message_ids = itertools.count(1)


async def nothing(run: Run, updates: Updates) -> None:
    """An agent's code that does nothing."""


class Script:
    """A runtime made of two functions."""

    decides_refusals = False

    def __init__(self, execute: Act, cancel: Act = nothing) -> None:
        self._execute = execute
        self._cancel = cancel

    async def execute(self, run: Run, updates: Updates) -> None:
        await self._execute(run, updates)

    async def cancel(self, run: Run, updates: Updates) -> None:
        await self._cancel(run, updates)


class ScriptSlot(RuntimeSlot):
    """Holds a runtime that is there already."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("script", "simulator", "echo")
        self._given = runtime

    def get(self) -> Runtime:
        return self._given


class World:
    """The hosts and agents of one test."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.hosts: list[Host] = []
        self._slugs = itertools.count(1)
        self._connection: psycopg.AsyncConnection | None = None

    async def start_host(self, role: str = "web") -> Host:
        """One more process's worth of a host."""
        host = make_host(role)
        await host.start()
        self.hosts.append(host)
        return host

    async def stop(self) -> None:
        """Stop what was started."""
        for host in self.hosts:
            await host.stop()
        if self._connection is not None:
            await self._connection.close()

    async def add_agent(self, execute: Act | None = None, cancel: Act = nothing, **fields: Any) -> AgentEntry:
        """A registered agent that every host knows. Its code is `execute`, or the simulator `echo`.

        `fields` are those of the model; what its validators would refuse (a limit of 0 seconds) is taken too.
        """
        slug = f"agent-{next(self._slugs)}"
        values = {"kind": "simulator", "executor": "echo"} | fields
        agent, _ = await in_thread(lambda: register_agent(slug, values))
        for host in self.hosts:
            await host.registry.load()
        entry = self.hosts[0].registry.by_id(agent.pk)
        assert entry is not None
        return entry if execute is None else replace(entry, slot=ScriptSlot(Script(execute, cancel)))

    def call(self, entry: AgentEntry, owner: str = ALICE, host: Host | None = None, **fields: Any) -> Call:
        """A call of `owner` that comes in at a host, the first one unless it is given."""
        return Call(host or self.hosts[0], entry, Caller(owner, authenticated=True), "JSONRPC/1.0", **fields)

    async def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of one statement on a connection of the test's own, committed at once."""
        if self._connection is None:
            self._connection = await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)
        cursor = await self._connection.execute(sql.encode(), parameters)
        return await cursor.fetchall() if cursor.description else []

    @asynccontextmanager
    async def locked_tasks(self) -> AsyncIterator[int]:
        """Nobody can change a task inside the block. Gives the pid of who holds the lock."""
        async with await psycopg.AsyncConnection.connect(self.dsn) as lock:
            await lock.execute("SELECT * FROM tasks_app_task FOR UPDATE")
            yield lock.info.backend_pid
            await lock.rollback()

    @asynccontextmanager
    async def read_only(self, *, all_sessions: bool = False) -> AsyncIterator[None]:
        """New sessions in the test database may only read. Those that are there already go on as they are, or with
        `all_sessions` end, except for the test's own."""
        ((name,),) = await self.query("SELECT current_database()")
        await self.query(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        try:
            if all_sessions:
                await self.query(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid() AND state <> 'idle in transaction'"
                )
            yield
        finally:
            await self.query(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
            await in_thread(connections.close_all)  # Django's own, which tests after this one would go on with.

    async def load(self, task_id: str) -> TaskRecord:
        """A task as stored now."""
        record = await self.hosts[0].store.load(task_id)
        assert record is not None
        return record

    async def only_task(self) -> TaskRecord:
        """The one task there is."""
        ((task_id,),) = await self.query("SELECT id FROM tasks_app_task")
        return await self.load(task_id)

    async def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table of tasks, for "and nothing changed"."""
        tables = ("task", "message", "event", "receipt", "taskcount", "pushconfig")
        return {t: sorted(await self.query(f"SELECT * FROM tasks_app_{t}"), key=repr) for t in tables}


def request(
    text: str = "hi",
    *,
    message_id: str = "",
    task_id: str = "",
    context_id: str = "",
    references: Sequence[str] = (),
    immediately: bool = False,
    history_length: int | None = None,
    push_config: TaskPushNotificationConfig | None = None,
) -> SendMessageRequest:
    """A SendMessageRequest with one text part and, unless given, a messageId of its own."""
    message = Message(
        message_id=message_id or f"m-{next(_message_ids)}",
        role=Role.USER,
        parts=[Part(text=text)],
        task_id=task_id,
        context_id=context_id,
        reference_task_ids=list(references),
    )
    configuration = SendMessageConfiguration(return_immediately=immediately, history_length=history_length)
    if push_config is not None:
        configuration.task_push_notification_config = push_config
    return SendMessageRequest(message=message, configuration=configuration)


def say(text: str, message_id: str = "") -> Message:
    """A message of the agent."""
    return Message(message_id=message_id or f"a-{next(_message_ids)}", role=Role.AGENT, parts=[Part(text=text)])


def chunk(text: str, artifact_id: str = "result") -> Artifact:
    """An artifact with one text part."""
    return Artifact(artifact_id=artifact_id, parts=[Part(text=text)])


def text_of(message: Message | None) -> str:
    """The text of a message's only part."""
    assert message is not None
    (part,) = message.parts
    assert isinstance(part.text, str)
    return part.text


async def complete(run: Run, updates: Updates) -> None:
    """An agent that is done at once."""
    await updates.status(TaskState.COMPLETED)


async def work(run: Run, updates: Updates) -> None:
    """Report WORKING and go on elsewhere."""
    await updates.status(TaskState.WORKING)


async def ask(run: Run, updates: Updates) -> None:
    """Ask once, then complete."""
    if run.task is None:
        await updates.status(TaskState.INPUT_REQUIRED, say("well?"))
    else:
        await updates.artifact(chunk(run.text, f"answer-{len(run.task.history)}"))
        await updates.status(TaskState.COMPLETED)


async def until(condition: Callable[[], Any], what: str) -> Any:
    """The first truthy value of `condition`, looked at in every turn of the loop."""
    async with asyncio.timeout(PATIENCE):
        while not (value := condition()):  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert value, what
    return value


async def beat(host: Host) -> None:
    """One heartbeat of a host, and what it makes of it."""
    take_pulse(await asyncio.to_thread(host.heartbeat.beat))


async def soon(awaitable: Awaitable[Any]) -> Any:
    """What an awaitable gives; fails the test instead of hanging."""
    return await asyncio.wait_for(awaitable, PATIENCE)
