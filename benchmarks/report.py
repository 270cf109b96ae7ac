"""RESULTS.md: the table, its date, and everything that the figures depend on."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.claims import HTTP_SHARE, Outcome, ratio_text
from benchmarks.client import Measure
from benchmarks.jobs import GRPC, HOST

REFERENCE_PACKAGES = ("a2a-sdk", "uvicorn", "sqlalchemy", "asyncpg")
_HOST_PACKAGES = ("uvicorn", "django", "psycopg", "celery", "h2")


@dataclass(frozen=True, slots=True)
class Conditions:
    """How it was measured. `postgres` are settings by name, `reference` package versions by name."""

    seconds: float
    pairs: int
    postgres: Mapping[str, str]
    reference: Mapping[str, str]


def render(
    outcomes: Sequence[Outcome], jobs: Mapping[str, Mapping[str, Sequence[Measure]]], conditions: Conditions
) -> str:
    """The whole file. `jobs` are the measurements by job and variant."""
    missed = [outcome for outcome in outcomes if not outcome.passed]
    verdict = "Every row holds." if not missed else f"{len(missed)} of {len(outcomes)} rows miss."
    parts = [
        f"# Results of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"{verdict} Made by `make bench`: reference and host by turns on one PostgreSQL, {conditions.pairs} pairs of "
        f"{conditions.seconds:g} s for each row, every reply checked. A ratio is the median of the pairs' ratios, a "
        "figure the median of the pairs. `c` is the number of callers, each waiting for its answer before it asks "
        "again.",
        table(outcomes),
        "HTTP+JSON is the host over its other binding; the share of JSON-RPC's rate that it reaches must be at least "
        f"{ratio_text(HTTP_SHARE)}. A row that says `beside` has the host itself as its base. The memory row "
        "is measured once, on processes that have just started. Rows without a reference are of the host alone.",
        *_errors(outcomes),
        "## Where the time goes",
        "Cores that each process kept busy while the host answered, over JSON-RPC where nothing else is said, of "
        f"{len(os.sched_getaffinity(0))} that all of them share.",
        _cores(jobs),
        "## Conditions",
        _conditions(conditions),
    ]
    return "\n\n".join(parts) + "\n"


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a Markdown table."""
    lines = [
        "| row | unit | reference | host | ratio | wanted | HTTP+JSON | of JSON-RPC | |",
        "|---|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for outcome in outcomes:
        cells = [
            outcome.title,
            outcome.unit,
            _number(outcome.base),
            _number(outcome.subject),
            _times(outcome.ratio),
            outcome.wanted,
            "" if outcome.http is None else _number(outcome.http),
            "" if outcome.http_share is None else f"{outcome.http_share:.2f}",
            "pass" if outcome.passed else "MISS",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _times(ratio: float) -> str:
    """A ratio as people read it: `25.3x`, or `1/8.1` below one."""
    if math.isnan(ratio):
        return "-"
    return f"{ratio:.3g}x" if ratio >= 1 or ratio <= 0 else f"1/{1 / ratio:.3g}"


def _errors(outcomes: Sequence[Outcome]) -> list[str]:
    """The most frequent errors of each row that has some."""
    wrong = [outcome for outcome in outcomes if outcome.errors]
    if not wrong:
        return []
    lines = []
    for outcome in wrong:
        kinds = Counter(error[:300] for error in outcome.errors).most_common(3)
        shown = ", ".join(f"{count} x `{error}`" for error, count in kinds)
        lines.append(f"- {outcome.title}: {len(outcome.errors)} errors: {shown}")
    return ["## Errors", "\n".join(lines)]


def _cores(jobs: Mapping[str, Mapping[str, Sequence[Measure]]]) -> str:
    names = list(dict.fromkeys(n for by in jobs.values() for m in by.get(HOST, ()) for n in m.cores))
    lines = [f"| job | requests/s | {' | '.join(names)} |", f"|---|--:|{'--:|' * len(names)}"]
    rows = {job: by_variant.get(HOST, ()) for job, by_variant in jobs.items()}
    rows |= {f"{job}, over gRPC": by_variant[GRPC] for job, by_variant in jobs.items() if GRPC in by_variant}
    for job, measured in rows.items():
        if not measured:
            continue
        cores = [statistics.median(m.cores.get(name, math.nan) for m in measured) for name in names]
        cells = [_number(statistics.median(m.rate for m in measured)), *(f"{c:.2f}" for c in cores)]
        lines.append(f"| {job} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _conditions(conditions: Conditions) -> str:
    ours = {name: version(name) for name in _HOST_PACKAGES}
    lines = [
        f"- machine: {_processor()}, {len(os.sched_getaffinity(0))} cores, {_memory_gib():.0f} GiB, "
        f"{platform.system()} {platform.release()}; load client, servers and PostgreSQL share it",
        f"- Python {platform.python_version()}",
        f"- reference: {_versions(conditions.reference)}, one process",
        f"- host: {_versions(ours)}, one web process, one gRPC process and one worker as `manage.py up` starts them",
        f"- PostgreSQL: {_versions(conditions.postgres)}",
    ]
    return "\n".join(lines)


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in versions.items())


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
