"""One `manage.py up` for one DATA_DIR: the lock on it, and the end of what a killed one left running."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO

from a2a_host.services.errors import ServiceError
from a2a_host.services.files import write_private
from a2a_host.services.layout import Layout
from a2a_host.services.processes import Process

_PATIENCE = 20.0  # seconds for a leftover PostgreSQL to write its checkpoint


@dataclass(frozen=True, slots=True)
class Trace:
    """A process that was started: `born` (clock ticks since boot) tells it from a later one with its pid."""

    name: str
    pid: int
    born: int
    stop_signal: int

    @property
    def alive(self) -> bool:
        return self.born > 0 and _born(self.pid) == self.born


def claim(layout: Layout) -> IO[str]:
    """Make DATA_DIR and take its lock, which is held until the returned file is closed. Raises ServiceError."""
    # As root others may pass, not look: PostgreSQL's own user has its folder inside.
    layout.data_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
    lock = layout.lock.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip()
        lock.close()
        raise ServiceError(
            f"{layout.data_dir} is in use by process {holder}: stop it, or set another DATA_DIR"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def remember(layout: Layout, processes: list[Process]) -> None:
    """Write down what runs, for the next start after this process was killed."""
    traces = [Trace(p.name, p.pid, _born(p.pid), int(p.service.stop_signal)) for p in processes]
    write_private(layout.processes, json.dumps([asdict(trace) for trace in traces]))


def end_leftovers(layout: Layout) -> list[str]:
    """End what an earlier `manage.py up` of this DATA_DIR left; returns the names of what was still there."""
    try:
        traces = [Trace(**trace) for trace in json.loads(layout.processes.read_text())]
    except (OSError, ValueError, TypeError):
        return []
    left = [trace for trace in traces if trace.alive]
    for trace in left:
        with suppress(ProcessLookupError):
            os.kill(trace.pid, trace.stop_signal)
    deadline = time.monotonic() + _PATIENCE
    while any(trace.alive for trace in left) and time.monotonic() < deadline:
        time.sleep(0.02)
    for trace in left:
        if trace.alive:
            with suppress(ProcessLookupError):
                os.killpg(trace.pid, signal.SIGKILL)
    return [trace.name for trace in left]


def _born(pid: int) -> int:
    """Start of a process in clock ticks since boot, from /proc; 0 if there is none, or only its exit code is left."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
