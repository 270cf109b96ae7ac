"""Busy polling: the event loop looks for the answer of the database again and again instead of sleeping until it comes.

A processor without work sleeps, and to wake it takes some 50 µs on a virtual machine, in each write of a lone caller:
measured, a SendMessage is answered a tenth earlier where the loop stays awake. That costs no more processor time than
the database takes for the write, gives way to whoever else wants the processor, and is left out where there is one
processor only.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


class BusyPoll:
    """Keeps an event loop awake from `begin` to `end`, for `seconds` at most; 0: never."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0
        self._polling = False

    def begin(self) -> None:
        """Something is going to come soon."""
        if self._seconds:
            self._until = time.monotonic() + self._seconds
            if not self._polling:
                self._polling = True
                self._loop = asyncio.get_running_loop()
                self._loop.call_soon(self._poll)

    def end(self) -> None:
        """It is here."""
        self._until = 0.0

    def _poll(self) -> None:
        if time.monotonic() < self._until:
            os.sched_yield()
            self._loop.call_soon(self._poll)
        else:
            self._polling = False


def processors() -> float:
    """How many processors this process may use at a time, by its affinity and the quotas of its control groups."""
    return min([float(len(os.sched_getaffinity(0))), *_quotas(Path("/proc/self/cgroup"), _CGROUPS)])


def _quotas(membership: Path, root: Path) -> list[float]:
    """The quotas of the groups that a process is in and of those around them, of both versions of control groups."""
    quotas: list[float] = []
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / controllers if controllers else root
        group = top / path.lstrip("/")
        for folder in [group, *group.parents]:
            if folder.is_relative_to(top):
                quotas += _quota(folder)
    return quotas


def _quota(folder: Path) -> list[float]:
    """Nothing where there is no limit, or none that can be read."""
    try:
        if (both := folder / "cpu.max").exists():
            quota, period = both.read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return []
    return [int(quota) / int(period)] if quota.isdecimal() else []
