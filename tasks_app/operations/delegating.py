"""Messages of agents to other agents of the host: new tasks of the same principal, below the task that sent them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from datetime import datetime

from agents.access import may_call
from agents.runtimes.base import Run
from agents.runtimes.errors import DelegationError, RunEndedError
from protocol import codec
from protocol.errors import A2AError, InvalidParamsError, PermissionDeniedError, UnavailableError
from protocol.model import Task
from protocol.requests import SendMessageRequest
from protocol.states import TaskState
from tasks_app.content.running import fill_input
from tasks_app.execution.host import Host
from tasks_app.execution.turn import task_of
from tasks_app.operations.call import Call
from tasks_app.operations.sending import send_message
from tasks_app.operations.streaming import stream_message

MAX_DEPTH = 8
"""How many tasks may stand above one: agents that delegate in a circle come to an end."""
_DIALECT = "HOST/1.0"

# The task of the run, and how many tasks are above it.
_LINE = f"""WITH RECURSIVE line AS (
        SELECT id, parent_id, state, attempt, deadline_at, 0 AS depth FROM tasks_app_task WHERE id = %s
        UNION ALL
        SELECT t.id, t.parent_id, t.state, t.attempt, t.deadline_at, depth + 1
        FROM line JOIN tasks_app_task t ON t.id = line.parent_id WHERE depth < {MAX_DEPTH})
    SELECT state, attempt, deadline_at, (SELECT max(depth) FROM line) FROM line WHERE depth = 0"""


class HostDelegations:
    """Implements `agents.runtimes.base.Delegations` for the runs of one process."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def send(
        self, run: Run, agent: str, request: SendMessageRequest, extensions: frozenset[str] = frozenset()
    ) -> Task:
        """Send a message and wait until its task is terminal or interrupted. Raises DelegationError."""
        with _explained(agent):
            call = await self._call(run, agent, extensions)
            task = task_of((await send_message(call, _checked(run, request))).record)
            await fill_input(task)
            return task

    async def stream(
        self, run: Run, agent: str, request: SendMessageRequest, extensions: frozenset[str] = frozenset()
    ) -> AsyncGenerator[bytes, None]:
        """The same as StreamResponses: the Task, then its events. Raises DelegationError."""
        with _explained(agent):
            call = await self._call(run, agent, extensions)
            async with aclosing(await stream_message(call, _checked(run, request))) as frames:
                async for frame in frames:
                    if frame.payload is not None:
                        yield frame.payload
                if frames.interrupted:
                    raise UnavailableError(retry_after=1, message="The host stops.")

    async def _call(self, run: Run, agent: str, extensions: frozenset[str]) -> Call:
        entry = self._host.registry.get(agent)
        if not may_call(entry, run.caller):
            raise PermissionDeniedError("The caller of this task is anonymous, and the agent is not open.")
        return Call(
            self._host,
            entry,
            run.caller,
            _DIALECT,
            requested=extensions,
            parent_id=run.task_id,
            deadline_at=await self._check_line(run),
        )

    async def _check_line(self, run: Run) -> datetime | None:
        """The deadline of the run's task. Raises DelegationError for a run that has ended, and too far down."""
        rows = await self._host.store.query(_LINE, [run.task_id])
        state, attempt, deadline_at, depth = rows[0] if rows else (TaskState.CANCELED.number, 0, None, 0)
        if TaskState.from_number(state).terminal or attempt != run.attempt:
            raise RunEndedError
        if depth >= MAX_DEPTH:
            raise DelegationError(
                f"{MAX_DEPTH} tasks stand above this one, each delegated by the one before: it may not delegate.",
                "TOO_DEEP",
            )
        found: datetime | None = deadline_at
        return found


def _checked(run: Run, request: SendMessageRequest) -> SendMessageRequest:
    """The request as if a caller had sent it, in the context of the run unless it names one."""
    checked = codec.decode(SendMessageRequest, codec.encode(request))
    if not checked.message.task_id:
        checked.message.context_id = checked.message.context_id or run.context_id
    return checked


@contextmanager
def _explained(agent: str) -> Iterator[None]:
    """Errors in words for whoever wrote the delegating agent."""
    try:
        yield
    except InvalidParamsError as error:
        fields = "; ".join(f"{v.field} {v.description}" for v in error.violations)
        raise DelegationError(f"{agent!r} does not take the message: {fields}.", error.reason) from error
    except A2AError as error:
        raise DelegationError(f"Nothing was delegated to {agent!r}. {error.message}", error.reason) from error
