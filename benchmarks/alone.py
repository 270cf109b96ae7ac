"""Figures of the host alone: each is measured once, in its own way, and has a bound in its own unit or none."""

from __future__ import annotations

import asyncio
import math
import socket
import statistics
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks.claims import Outcome, not_measured
from benchmarks.databases import HOST_DATABASE, Databases
from benchmarks.jobs import Targets
from benchmarks.replies import WrongReply
from benchmarks.wire import WireError

_MOMENTS = "SELECT seq, extract(epoch FROM created_at) FROM tasks_app_event WHERE task_id = %s"


@dataclass(frozen=True, slots=True)
class Bound:
    """What is wanted of a figure: a bound in its unit or, beside a base, of the ratio. None at all: for information."""

    title: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    times_at_most: float | None = None

    @property
    def wanted(self) -> str:
        """The bound as it is written in the table."""
        if self.times_at_most is not None:
            return f"≤ {self.times_at_most:g}x"
        if self.at_least is not None:
            return f"≥ {self.at_least:g} {self.unit}"
        return f"≤ {self.at_most:g} {self.unit}" if self.at_most is not None else ""

    def judge(self, figure: float, base: float = math.nan, errors: Sequence[str] = ()) -> Outcome:
        """What a measurement says about it. NaN keeps no bound, and no figure holds with errors."""
        ratio = figure / base if base else math.nan
        kept = not math.isnan(figure) and not errors
        if self.at_least is not None:
            kept = kept and figure >= self.at_least
        if self.at_most is not None:
            kept = kept and figure <= self.at_most
        if self.times_at_most is not None:
            kept = kept and ratio <= self.times_at_most
        return Outcome(self.title, self.unit, self.wanted, base, figure, ratio, passed=kept, errors=list(errors))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a measurement is made."""

    targets: Targets
    databases: Databases
    receiver: socket.socket
    """Listens at an address that the host may call."""

    def rows(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows of the host's database."""
        with self.databases.connect(HOST_DATABASE) as connection:
            return connection.execute(statement.encode(), parameters).fetchall()

    def moments(self, task_id: str) -> dict[int, float]:
        """When the host took each event of a task, in seconds since the epoch, by its seq."""
        return {seq: float(at) for seq, at in self.rows(_MOMENTS, [task_id])}


@dataclass(frozen=True, slots=True)
class Alone:
    """One measurement, which judges `bounds` in their order."""

    group: str
    bounds: tuple[Bound, ...]
    measure: Callable[[Place], Coroutine[Any, Any, Sequence[Outcome]]]

    def run(self, place: Place) -> Sequence[Outcome]:
        """Measure; what cannot be measured is a miss."""
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(self.measure(place))
        except (OSError, TimeoutError, WireError, WrongReply, RuntimeError) as wrong:
            why = f"{type(wrong).__name__}: {wrong}"
            return [not_measured(bound.title, bound.wanted, why) for bound in self.bounds]


def milliseconds(seconds: Sequence[float], share: float) -> float:
    """A percentile in milliseconds; `share` 0.5 is the median. NaN of nothing."""
    if not seconds:
        return math.nan
    if share == 0.5:
        return statistics.median(seconds) * 1000
    return sorted(seconds)[math.ceil(len(seconds) * share) - 1] * 1000
