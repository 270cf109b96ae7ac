"""The short form of `make chaos`: the faults that tell most, on a host with short leases."""

from __future__ import annotations

import signal

import pytest

from tests.chaos.faults import FAULTS, Fault, draw, killed, webhooks_stall
from tests.chaos.report import table
from tests.chaos.run import Plan, run
from tests.chaos.site import Site

_OVER = "UPDATE tasks_app_pushconfig SET lease_until = now() WHERE lease_until IS NOT NULL"


def kill_worker_while_webhooks_stall(site: Site) -> None:
    """It dies with deliveries in its hands, and the forty seconds for which they are its own go by."""
    webhooks_stall(site)
    pid = site.send("worker", signal.SIGKILL)
    site.wait_for_end(pid)
    site.query(_OVER)
    site.wait_for_another("worker", pid)


SHORT = (
    Fault("kill -9 web", killed("web")),
    Fault("kill -9 PostgreSQL", killed("postgres")),
    Fault("webhooks stall, kill -9 worker", kill_worker_while_webhooks_stall),
)

# How long a cancel takes shows on a machine that does nothing else.
PLAN = Plan("short", SHORT, races=20, duplicates=200, cancels=0, clients=8, calm=15)
IDLE = {"cancels that took a second", "replies that nobody expects"}


@pytest.mark.timeout(240)
def test_nothing_is_lost_while_parts_are_killed() -> None:
    lines: list[str] = []
    with Site(LEASE_SECONDS="5") as site:
        result = run(site, PLAN, lines.append)
    assert result.audit.clean, "\n".join([*lines, table(result)])
    assert {name for name, check in result.audit.checks.items() if not check.looked_at} == IDLE


def test_every_fault_comes_before_any_comes_again() -> None:
    names = [fault.name for fault in draw("7", 2 * len(FAULTS) + 3)]
    assert len(set(names[: len(FAULTS)])) == len(set(names[len(FAULTS) : 2 * len(FAULTS)])) == len(FAULTS)
    assert names == [fault.name for fault in draw("7", 2 * len(FAULTS) + 3)]
    assert names != [fault.name for fault in draw("8", 2 * len(FAULTS) + 3)]
