"""The run that a piece of agent code belongs to, for helpers that are called from anywhere inside it."""

from __future__ import annotations

from contextvars import ContextVar

from agents.runtimes.base import Run, Updates
from agents.runtimes.errors import RunEndedError


class Inside:
    """Holds a run until its task ends or is another run's: contexts are copied, and kept longer than that."""

    __slots__ = ("_held",)

    def __init__(self, run: Run, updates: Updates) -> None:
        self._held: tuple[Run, Updates] | None = (run, updates)
        _current.set(self)

    def leave(self) -> None:
        """The task has ended or is another run's: it is over, also for tasks that its code has left behind."""
        self._held = None

    def run(self) -> tuple[Run, Updates]:
        """Raises RunEndedError when it is over."""
        if self._held is None:
            raise RunEndedError
        return self._held


_current: ContextVar[Inside] = ContextVar("a2a_host_run")
"""Set by the host around each run. asyncio hands it on to tasks that are made inside."""


class NoRunError(RuntimeError):
    """This works only inside of a run: in AgentExecutor.execute, and in what it awaits or starts."""


def current_run() -> tuple[Run, Updates]:
    """The run, and where it reports. Raises NoRunError outside of one, RunEndedError after it."""
    try:
        inside = _current.get()
    except LookupError:
        raise NoRunError(NoRunError.__doc__) from None
    return inside.run()
