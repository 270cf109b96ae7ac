"""SendMessage while tasks that are kept no longer are deleted, beside SendMessage before and after."""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from datetime import datetime

from benchmarks.alone import Alone, Bound, Place, milliseconds
from benchmarks.calls import JsonRpc
from benchmarks.claims import Outcome
from benchmarks.client import Load
from benchmarks.databases import HOST_DATABASE, OLD_AGENT, ROOT

DELETED = 100_000
CALLERS = 16
SECONDS = 8.0  # of load without a deletion, before it and after it
LONGEST = 180.0  # seconds that the deletion may take

_SENDS = Bound(f"SendMessage p99 while {DELETED:,} tasks are deleted, beside none, c={CALLERS}", "ms", times_at_most=2)
_DELETIONS = Bound("Tasks deleted meanwhile", "tasks/s")

_LIMIT = "UPDATE agents_agent SET keep_completed_days = 1 WHERE slug = %s RETURNING id"
_CUTOFF = "SELECT now() - interval '1 day'"
_LEFT = """SELECT count(*) FROM tasks_app_task
    WHERE agent_id = (SELECT id FROM agents_agent WHERE slug = %s) AND status_at < %s"""


async def _retain(place: Place) -> Sequence[Outcome]:
    """By the command, which does what the worker does every few minutes, with the same batches and pauses."""
    before = await _load(place, SECONDS).run(CALLERS)
    place.rows(_LIMIT, [OLD_AGENT])
    cutoff = place.rows(_CUTOFF, [])[0][0]
    there = _left(place, cutoff)
    command, environment = place.databases.command(HOST_DATABASE, "retention", "apply", "--agent", OLD_AGENT)
    process = await asyncio.create_subprocess_exec(*command, env=environment, cwd=ROOT, stdout=PIPE)
    await asyncio.to_thread(_wait_for_less, place, cutoff, there)
    began = time.perf_counter()
    load = _load(place, LONGEST)
    running = asyncio.create_task(load.run(CALLERS))
    said, _ = await asyncio.wait_for(process.communicate(), LONGEST)
    seconds = time.perf_counter() - began
    load.end()
    during = await running
    after = await _load(place, SECONDS).run(CALLERS)

    errors = [*before.errors, *during.errors, *after.errors]
    if there < DELETED or _left(place, cutoff):
        errors.append(f"not all of {there} tasks are gone: {said!r}")
    base = (milliseconds(before.latencies, 0.99) + milliseconds(after.latencies, 0.99)) / 2
    return [
        _SENDS.judge(milliseconds(during.latencies, 0.99), base, errors),
        _DELETIONS.judge(there / seconds, errors=errors),
    ]


def _load(place: Place, seconds: float) -> Load:
    echo = place.targets.agent("echo")
    return Load(echo, JsonRpc(echo).send, seconds)


def _wait_for_less(place: Place, cutoff: datetime, there: int) -> None:
    """Return when the first tasks are gone; until then the command only starts. Raises TimeoutError."""
    deadline = time.monotonic() + LONGEST
    while _left(place, cutoff) == there:
        if time.monotonic() > deadline:
            raise TimeoutError("nothing is deleted")
        time.sleep(0.1)


def _left(place: Place, cutoff: datetime) -> int:
    """Tasks that are kept no longer."""
    return int(place.rows(_LEFT, [OLD_AGENT, cutoff])[0][0])


RETENTION = [Alone("retention", (_SENDS, _DELETIONS), _retain)]
