"""What is wanted: each claim compares two sides of a job, and is judged by what the job measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction

from benchmarks.client import Measure
from benchmarks.jobs import GRPC, HOST, HTTP, OTHER, REFERENCE, V03
from benchmarks.subscribers import Idle


class Metric(Enum):
    """What of a measurement is compared; the value is its unit."""

    RATE = "requests/s"
    FIRST_EVENT = "ms"

    def of(self, measured: Measure) -> float:
        """The figure in its unit."""
        return measured.rate if self is Metric.RATE else measured.first_event_p50 * 1000


@dataclass(frozen=True, slots=True)
class Claim:
    """The figure of `subject` divided by that of `base`, and its bound; None is for information only."""

    title: str
    job: str
    metric: Metric
    at_least: Fraction | None = None
    at_most: Fraction | None = None
    subject: str = HOST
    base: str = REFERENCE

    @property
    def wanted(self) -> str:
        """The bound as it is written in the table."""
        if self.at_least is not None:
            return f"≥ {ratio_text(self.at_least)}"
        return f"≤ {ratio_text(self.at_most)}" if self.at_most is not None else ""

    def holds(self, ratio: float) -> bool:
        """Whether `ratio` keeps the bound. NaN keeps none."""
        if math.isnan(ratio):
            return False
        return (self.at_least is None or ratio >= self.at_least) and (self.at_most is None or ratio <= self.at_most)


def ratio_text(value: Fraction) -> str:
    """`1/6`, `1.5x`."""
    return f"1/{value.denominator}" if value.numerator == 1 < value.denominator else f"{float(value):g}x"


def _rate(title: str, job: str, at_least: int) -> Claim:
    return Claim(title, job, Metric.RATE, at_least=Fraction(at_least))


def _beside_json_rpc(title: str, job: str, subject: str) -> Claim:
    return Claim(title, job, Metric.RATE, at_least=Fraction(7, 10), subject=subject, base=HOST)


CLAIMS = [
    _rate("SendMessage `echo`, c=1", "send-1", 10),
    _rate("SendMessage `echo`, c=16", "send-16", 25),
    _rate("SendMessage `echo`, c=64", "send-64", 40),
    _rate("SendStreamingMessage, c=16", "stream-16", 20),
    _rate("SendStreamingMessage, c=64", "stream-64", 30),
    Claim("Time to first event p50, c=1", "stream-1", Metric.FIRST_EVENT, at_most=Fraction(1, 6)),
    Claim("Time to first event p50, c=16", "stream-16", Metric.FIRST_EVENT, at_most=Fraction(1, 20)),
    _rate("GetTask, c=16", "get-16", 12),
    _rate("ListTasks, 50 of 1,000,000, c=1", "list-1", 200),
    Claim(
        "ListTasks, 50 of 1,000, beside 50 of 1,000,000",
        "list-1",
        Metric.RATE,
        at_most=Fraction(3, 2),
        subject=OTHER,
        base=HOST,
    ),
    _rate("Agent card, c=16", "card-16", 4),
    _rate("SendMessage to an agent in a Celery worker, c=16", "worker-16", 4),
    Claim("SendMessage with an API key, beside the open agent, c=16", "key-16", Metric.RATE, base=OTHER),
    _beside_json_rpc("SendMessage over gRPC, beside JSON-RPC, c=16", "grpc-16", GRPC),
    _beside_json_rpc("SendMessage over gRPC, beside JSON-RPC, c=64", "grpc-64", GRPC),
    _beside_json_rpc("SendMessage in 0.3, beside 1.0, c=16", "v03-16", V03),
]
HTTP_SHARE = Fraction(1, 3)  # of JSON-RPC's rate, which HTTP+JSON must reach
IDLE_KIB = 16  # of memory that an idle stream may take


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the table. Figures are medians over the pairs, ratios are medians of the pairs' ratios.

    `http` is the host's figure over HTTP+JSON, `http_share` its rate divided by JSON-RPC's; None where there is none.
    """

    title: str
    unit: str
    wanted: str
    base: float = math.nan
    subject: float = math.nan
    ratio: float = math.nan
    http: float | None = None
    http_share: float | None = None
    passed: bool = False
    errors: list[str] = field(default_factory=list)


def judge(claim: Claim, measured: Mapping[str, Sequence[Measure]]) -> Outcome:
    """What the measurements of the claim's job, by variant and pair by pair, say about it."""
    sides = {name: [claim.metric.of(m) for m in measured[name]] for name in measured}
    ratio = _median_ratio(sides[claim.subject], sides[claim.base])
    errors = [f"{name}: {error}" for name in measured for m in measured[name] for error in m.errors]
    outcome = Outcome(
        title=claim.title,
        unit=claim.metric.value,
        wanted=claim.wanted,
        base=statistics.median(sides[claim.base]),
        subject=statistics.median(sides[claim.subject]),
        ratio=ratio,
        passed=claim.holds(ratio) and not errors,
        errors=errors,
    )
    if HTTP not in measured or claim.subject != HOST:
        return outcome
    share = _median_ratio([m.rate for m in measured[HTTP]], [m.rate for m in measured[HOST]])
    return replace(
        outcome,
        http=statistics.median(sides[HTTP]),
        http_share=share,
        passed=outcome.passed and share >= HTTP_SHARE,
    )


def judge_idle(reference: Idle, host: Idle) -> Outcome:
    """Memory per idle stream. Every stream of the host must also have ended with its last event."""
    return Outcome(
        title=f"Memory per idle SubscribeToTask stream, {host.streams:,} of them (reference: {reference.streams:,})",
        unit="KiB",
        wanted=f"≤ {IDLE_KIB} KiB",
        base=reference.kib_each,
        subject=host.kib_each,
        ratio=host.kib_each / reference.kib_each,
        passed=host.kib_each <= IDLE_KIB and host.ended == host.opened and not host.errors,
        errors=reference.errors + host.errors,
    )


def not_measured(title: str, wanted: str, why: str) -> Outcome:
    """A line for what could not even be measured: a miss."""
    return Outcome(title, "", wanted, errors=[why])


def _median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """NaN when any pair has no ratio: a server that did nothing is no yardstick."""
    ratios = [a / b if b else math.nan for a, b in zip(above, below, strict=True)]
    return math.nan if any(math.isnan(r) for r in ratios) else statistics.median(ratios)
