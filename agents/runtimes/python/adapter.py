"""Runs an `AgentExecutor` of the a2a-sdk, unchanged, behind `Runtime`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from a2a.auth.user import UnauthenticatedUser, User
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.types import a2a_pb2 as pb

from agents.runtimes.base import Caller, Run, Updates
from agents.runtimes.python.loading import construct, load_executor
from agents.runtimes.python.queue import UpdatesQueue
from agents.runtimes.python.to_pb import write_message, write_request, write_task


class CallerUser(User):
    """An authenticated caller as executors see it: `user_name` is the owner that tasks belong to."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    @property
    def is_authenticated(self) -> bool:
        """True."""
        return True

    @property
    def user_name(self) -> str:
        """The owner."""
        return self._owner


class PythonRuntime:
    """One executor, which serves all runs of its agent in this process."""

    def __init__(self, executor: AgentExecutor) -> None:
        self._executor = executor
        self.decides_refusals = bool(getattr(executor, "decides_refusals", False))

    async def execute(self, run: Run, updates: Updates) -> None:
        """Call `execute` with the message, the task as it was (follow-ups) and the tasks that the message refers to."""
        related = await run.load_related() if run.message.reference_task_ids else []
        context = RequestContext(
            call_context=_call_context(run),
            request=write_request(run.request),
            task_id=run.task_id,
            context_id=run.context_id,
            task=_current_task(run),
            related_tasks=[write_task(task) for task in related],
        )
        with _exit_is_an_error():
            await self._executor.execute(context, UpdatesQueue(run, updates))

    async def cancel(self, run: Run, updates: Updates) -> None:
        """Call `cancel` with the task and, as in the SDK, no message."""
        context = RequestContext(
            call_context=_call_context(run),
            task_id=run.task_id,
            context_id=run.context_id,
            task=_current_task(run) or _started_task(run),
        )
        with _exit_is_an_error():
            await self._executor.cancel(context, UpdatesQueue(run, updates, replied=False))


def build(path: str) -> PythonRuntime:
    """A runtime around a new executor of the class at `path`. Raises ExecutorError."""
    return PythonRuntime(construct(load_executor(path)))


@contextmanager
def _exit_is_an_error() -> Iterator[None]:
    """asyncio lets SystemExit through to the loop: sys.exit() in one agent would end the process of all of them."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError("The executor called sys.exit().") from error


def _call_context(run: Run) -> ServerCallContext:
    answered = run.answered
    return ServerCallContext(
        state={} if answered is None else {"answered_by": answered.by, "approved": answered.approved},
        user=_user(run.caller),
        tenant=run.request.tenant,
        requested_extensions=set(run.extensions),
    )


def _user(caller: Caller) -> User:
    return CallerUser(caller.owner) if caller.authenticated else UnauthenticatedUser()


def _current_task(run: Run) -> pb.Task | None:
    """The task before this turn, with the turn's message at the end of its history; None for a new task."""
    if run.task is None:
        return None
    task = write_task(run.task)
    if all(message.message_id != run.message.message_id for message in task.history):
        task.history.append(write_message(run.message))
    return task


def _started_task(run: Run) -> pb.Task:
    """A task that began with this run, for `cancel`: how far it came is not known here, but it was running."""
    return pb.Task(
        id=run.task_id,
        context_id=run.context_id,
        status=pb.TaskStatus(state=pb.TaskState.TASK_STATE_WORKING),
        history=[write_message(run.message)],
    )
