"""The run: start everything, measure row by row with reference and host by turns, judge, write the table."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from a2a_host.services.errors import ServiceError
from benchmarks.alone import Alone, Place
from benchmarks.claims import CLAIMS, Outcome, judge, judge_idle, not_measured
from benchmarks.client import Measure
from benchmarks.databases import ROOT
from benchmarks.delays import DELAYS
from benchmarks.jobs import GROUPS, IDLE, JOBS, REFERENCE, Job, Targets, Variant
from benchmarks.processes import cpu_seconds, memory
from benchmarks.pushing import PUSH
from benchmarks.report import REFERENCE_PACKAGES, Conditions, render, table
from benchmarks.resuming import RESUME
from benchmarks.retaining import RETENTION
from benchmarks.servers import Servers
from benchmarks.subscribers import idle_streams

FOLDER = ROOT / ".data-bench"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
IDLE_STREAMS = {"reference": 1000, "host": 5000}
ALONE = [*PUSH, *DELAYS, *RESUME, *RETENTION]  # the last one takes the most out of the database
ROWS = [*GROUPS, *dict.fromkeys(alone.group for alone in ALONE)]
WARM_UP = 0.5  # seconds of load before the first pair of a job
FILES = 8192  # open files: each stream has one here, and one in a server
# The run decides these itself, whatever the caller's environment says.
_OURS = (
    *("DATA_DIR", "DATABASE_URL", "BROKER_URL", "HOST", "PORT", "GRPC_PORT", "PUBLIC_URL", "AGENTS_DIR", "DEBUG"),
    *("ALLOWED_HOSTS", "TRUSTED_PROXIES", "SECRET_KEY", "LOG_LEVEL", "STATIC_ROOT", "DJANGO_SETTINGS_MODULE"),
    *("OUTBOUND_ALLOW", "OUTBOUND_DENY", "LEASE_SECONDS", "WEB_PROCESSES", "RETENTION_BATCH", "RETENTION_PAUSE"),
    *("RETENTION_SECONDS", "KEEP_ALIVE_SECONDS", "STORED_PART_BYTES", "CONTENT_STORAGE"),
)


def main() -> int:
    """Exit code: 0 when every row holds, 1 when one misses, 2 when the run could not be made."""
    options = _options()
    for name in _OURS:
        os.environ.pop(name, None)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    servers = Servers(FOLDER, say)
    try:
        servers.start()
        return Bench(servers, options.seconds, options.pairs).run(options.rows, options.output)
    except (ServiceError, RuntimeError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2
    finally:
        servers.stop()


def say(line: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description="Measure the host beside the reference.")
    parser.add_argument("--rows", help=f"only these, separated by commas: {', '.join(ROWS)}")
    parser.add_argument("--seconds", type=float, help="length of one measurement (4)")
    parser.add_argument("--pairs", type=int, default=3, help="measurements of each side of a row (3)")
    parser.add_argument("--quick", action="store_true", help="measurements of 1.5 s: about six minutes in all")
    parser.add_argument("--output", type=Path, help="where the table goes; by default RESULTS.md for a whole run only")
    options = parser.parse_args()
    whole = not (options.rows or options.quick or options.seconds)
    options.output = options.output or (RESULTS if whole else FOLDER / "RESULTS.md")
    options.seconds = options.seconds or (1.5 if options.quick else 4.0)
    options.rows = options.rows.split(",") if options.rows else ROWS
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"no such rows: {', '.join(sorted(unknown))}")
    if options.pairs < 1 or not 0 < options.seconds <= 60:
        parser.error("at least one pair, and at most 60 seconds")
    return options


class Bench:
    """One run on servers that answer."""

    def __init__(self, servers: Servers, seconds: float, pairs: int) -> None:
        self._servers = servers
        self._seconds = seconds
        self._pairs = pairs
        self._targets = Targets(
            *(servers.reference_url, servers.reference_many_url, servers.host_url, servers.host_grpc), servers.api_key
        )

    def run(self, groups: Sequence[str], output: Path) -> int:
        """Measure, print and write; returns the exit code."""
        outcomes: list[Outcome] = [self._idle()] if IDLE in groups else []
        measured: dict[str, dict[str, list[Measure]]] = {}
        for job in (job for job in JOBS if job.group in groups):
            outcomes += self._outcomes(job, measured)
        place = Place(self._targets, self._servers.databases, self._servers.receiver)
        for alone in (alone for alone in ALONE if alone.group in groups):
            outcomes += self._alone(alone, place)
        conditions = Conditions(
            *(self._seconds, self._pairs, self._servers.databases.settings()),
            self._servers.reference_versions(REFERENCE_PACKAGES),
        )
        output.write_text(render(outcomes, measured, conditions))
        print(f"\n{table(outcomes)}\n")
        say(f"Written to {output.relative_to(ROOT) if output.is_relative_to(ROOT) else output}")
        return 0 if all(outcome.passed for outcome in outcomes) else 1

    def _outcomes(self, job: Job, measured: dict[str, dict[str, list[Measure]]]) -> list[Outcome]:
        claims = [claim for claim in CLAIMS if claim.job == job.name]
        try:
            measured[job.name] = self._measure(job)
        except RuntimeError as error:
            return [not_measured(claim.title, claim.wanted, str(error)) for claim in claims]
        return [judge(claim, measured[job.name]) for claim in claims]

    def _measure(self, job: Job) -> dict[str, list[Measure]]:
        """All pairs of one job: A B A B … Errors of the warm-up count like any other."""
        variants = job.variants(self._targets)
        self._servers.databases.checkpoint()
        warm = {name: variant.measure(job.callers, WARM_UP) for name, variant in variants.items()}
        taken: dict[str, list[Measure]] = {name: [] for name in variants}
        for _ in range(self._pairs):
            for name, variant in variants.items():
                taken[name].append(self._take(name, variant, job.callers))
        for name, first in warm.items():
            taken[name][0].errors += first.errors
        self._tell(job, taken)
        return taken

    def _take(self, name: str, variant: Variant, callers: int) -> Measure:
        """One measurement, with the cores that each process kept busy."""
        before = self._cpu_seconds(name)
        result = variant.measure(callers, self._seconds)
        after = self._cpu_seconds(name)
        result.cores = {title: (after[title] - before[title]) / result.seconds for title in before}
        return result

    def _cpu_seconds(self, name: str) -> dict[str, float]:
        """CPU time that the processes behind a variant have used, by what they are called in the table."""
        servers = self._servers
        used = {"client": time.process_time(), "PostgreSQL": cpu_seconds(servers.postgres_pid)}
        if name == REFERENCE:
            return used | {"web": cpu_seconds(servers.reference_pid)}
        return used | {title: cpu_seconds(servers.host_pid(title)) for title in ("web", "worker", "grpc")}

    def _idle(self) -> Outcome:
        """Measured first, on processes that have not yet kept memory of earlier work."""
        servers, results = self._servers, []
        sides = {
            "reference": (self._targets.reference_rpc(), servers.reference_pid),
            "host": (self._targets.agent("hold"), servers.host_pid("web")),
        }
        for name, (endpoint, pid) in sides.items():
            count = IDLE_STREAMS[name]
            results.append(idle_streams(endpoint, count, lambda pid=pid: memory(pid)))  # type: ignore[misc]
            say(f"idle {name}: {results[-1].kib_each:.1f} KiB a stream, {len(results[-1].errors)} errors")
        return judge_idle(*results)

    def _alone(self, alone: Alone, place: Place) -> Sequence[Outcome]:
        self._servers.databases.checkpoint()
        outcomes = alone.run(place)
        for outcome in outcomes:
            say(f"{alone.group}: {outcome.title}: {outcome.subject:.1f} {outcome.unit}, {len(outcome.errors)} errors")
        return outcomes

    def _tell(self, job: Job, taken: Mapping[str, Sequence[Measure]]) -> None:
        """One line of progress: every rate, pair by pair."""
        rates = {name: "/".join(f"{m.rate:.0f}" for m in measures) for name, measures in taken.items()}
        errors = sum(len(m.errors) for measures in taken.values() for m in measures)
        shown = ", ".join(f"{name} {rate}" for name, rate in rates.items())
        say(f"{job.name}: {shown} per second, {errors} errors")
