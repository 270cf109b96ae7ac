"""From what an agent's row says to what runs behind it."""

from __future__ import annotations

import importlib
import logging

from agents.runtimes.base import Run, Runtime, Updates
from agents.runtimes.errors import ExecutorError
from agents.runtimes.simulators import SIMULATORS, Simulator
from protocol.errors import InternalError

logger = logging.getLogger(__name__)

PYTHON = "python"
SIMULATOR = "simulator"


class BrokenRuntime:
    """Stands in for code that cannot be imported or constructed: the agent stays listed, each of its runs fails."""

    decides_refusals = False

    async def execute(self, run: Run, updates: Updates) -> None:
        """Raises InternalError."""
        raise InternalError

    async def cancel(self, run: Run, updates: Updates) -> None:
        """Leaves it to the host to say CANCELED."""


class RuntimeSlot:
    """The runtime of one agent in this process, built on first use and kept while the agent names the same code."""

    __slots__ = ("_runtime", "executor", "kind", "slug")

    def __init__(self, slug: str, kind: str, executor: str) -> None:
        self.slug = slug
        self.kind = kind
        self.executor = executor
        self._runtime: Runtime | None = None

    def get(self) -> Runtime:
        """The runtime. Code that cannot be loaded is logged once and gives a runtime whose runs fail."""
        if self._runtime is None:
            try:
                self._runtime = build_runtime(self.kind, self.executor)
            except ExecutorError as error:
                logger.error("Agent %s cannot run: %s", self.slug, error)
                self._runtime = BrokenRuntime()
        return self._runtime

    def preload(self) -> None:
        """Import the code, without constructing it, so that the first run does not wait for the import."""
        try:
            check_executor(self.kind, self.executor, construct=False)
        except ExecutorError as error:
            logger.error("Agent %s will not run: %s", self.slug, error)

    def serves(self, kind: str, executor: str) -> bool:
        """Whether this slot may go on for an agent that names this code. Broken code is tried again."""
        return self.kind == kind and self.executor == executor and not isinstance(self._runtime, BrokenRuntime)


def build_runtime(kind: str, executor: str) -> Runtime:
    """A new runtime. Raises ExecutorError with a text for people."""
    if kind == SIMULATOR:
        return _simulator(executor)()
    # Imported when an agent needs it: protobuf and the SDK cost half a second of every start.
    adapter = importlib.import_module("agents.runtimes.python.adapter")
    runtime: Runtime = adapter.build(executor)
    return runtime


def check_executor(kind: str, executor: str, *, construct: bool = True) -> None:
    """Raise ExecutorError with a text for people unless the code is there and, with `construct`, can be made."""
    if kind == SIMULATOR:
        _simulator(executor)
        return
    loading = importlib.import_module("agents.runtimes.python.loading")
    executor_class = loading.load_executor(executor)
    if construct:
        loading.construct(executor_class)


def is_repeatable(kind: str, executor: str) -> bool:
    """Whether the code says that a run of it may be repeated whose process died. Raises ExecutorError."""
    if kind == SIMULATOR:
        return _simulator(executor).repeatable
    loading = importlib.import_module("agents.runtimes.python.loading")
    return getattr(loading.load_executor(executor), "repeatable", False) is True


def summarize(kind: str, executor: str) -> str:
    """What the code says about itself in one line, "" when it says nothing. Raises ExecutorError."""
    if kind == SIMULATOR:
        return SIMULATORS[executor].summary if executor in SIMULATORS else ""
    loading = importlib.import_module("agents.runtimes.python.loading")
    text = (loading.load_executor(executor).__doc__ or "").strip()
    return text.partition("\n")[0]


def _simulator(name: str) -> type[Simulator]:
    try:
        return SIMULATORS[name]
    except KeyError:
        raise ExecutorError(f"There is no simulator {name!r}. There are: {', '.join(SIMULATORS)}.") from None
