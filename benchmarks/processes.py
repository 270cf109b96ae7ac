"""What running processes use, read from /proc: a process stands for itself and all its descendants."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Resident memory in bytes."""
    return sum(_resident(member) for member in _family(pid))


def cpu_seconds(pid: int) -> float:
    """CPU time used so far, in seconds. What ended children used is not in it."""
    return sum(_ticks(member) for member in _family(pid)) / _TICKS


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the command's name; [] once the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _ticks(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else 0


def _resident(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))


def _family(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := _stat(int(folder.name)):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    family = [pid]
    for member in family:  # grows while it is walked
        family += children.get(member, [])
    return family
