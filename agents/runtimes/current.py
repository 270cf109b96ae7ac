"""The run that a piece of agent code belongs to, for helpers that are called from anywhere inside it."""

from __future__ import annotations

from contextvars import ContextVar

from agents.runtimes.base import Run, Updates

current: ContextVar[tuple[Run, Updates]] = ContextVar("a2a_host_run")
"""Set by the host around each run. asyncio hands it on to tasks that are made inside."""


class NoRunError(RuntimeError):
    """This works only inside of a run: in AgentExecutor.execute, and in what it awaits or starts."""


def current_run() -> tuple[Run, Updates]:
    """The run, and where it reports. Raises NoRunError outside of one."""
    try:
        return current.get()
    except LookupError:
        raise NoRunError(NoRunError.__doc__) from None
