"""Busy polling: when the loop stays awake, and on how many processors it may."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tasks_app.tables.busy_poll import BusyPoll, _quotas, processors


@pytest.fixture
def yields(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each turn of the loop in which it was polled."""
    seen: list[None] = []
    monkeypatch.setattr(os, "sched_yield", lambda: seen.append(None))
    return seen


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_the_loop_is_awake_from_begin_to_end(yields: list[None]) -> None:
    poll = BusyPoll(60)
    poll.begin()
    poll.begin()
    await turns(10)
    assert len(yields) == 10
    poll.end()
    await turns(10)
    assert len(yields) == 10
    poll.begin()
    await turns(5)
    assert len(yields) == 15
    poll.end()


async def test_it_sleeps_when_nothing_has_come_in_time(yields: list[None], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    poll = BusyPoll(0.25)
    poll.begin()
    await turns(3)
    now = 1.25
    await turns(3)
    assert len(yields) == 3
    poll.begin()
    now = 1.4
    await turns(2)
    assert len(yields) == 5
    now = 1.5
    await turns(2)
    assert len(yields) == 5


async def test_without_time_it_never_polls(yields: list[None]) -> None:
    poll = BusyPoll(0)
    poll.begin()
    await turns(3)
    assert yields == []


def test_the_affinity_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert processors() <= 1


@pytest.mark.parametrize(
    ("membership", "files", "quotas"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, [1.5]),
        ("0::/\n", {"cpu.max": "max 100000\n"}, []),
        ("0::/\n", {}, []),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, [0.5]),
        (
            "3:memory:/x\n2:cpu,cpuacct:/a\n",
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": "200000\n",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
                "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "memory/x/cpu.max": "1 100000\n",
            },
            [2.0],
        ),
    ],
)
def test_quotas_are_those_of_the_group_and_what_is_around_it(
    membership: str, files: dict[str, str], quotas: list[float], tmp_path: Path
) -> None:
    root = tmp_path / "cgroup"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "membership").write_text(membership)
    assert _quotas(tmp_path / "membership", root) == quotas


def test_a_machine_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert _quotas(tmp_path / "none", tmp_path) == []
