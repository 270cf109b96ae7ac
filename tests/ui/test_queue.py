"""The page of the queue, the command, and the runs on the page of a task."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from agents.models import Agent
from protocol.states import TaskState
from tasks_app.models import Execution, Process, Task
from tests.ui.support import START, Page, make_agent, make_task

HOUR = timedelta(hours=1)


def queue_json() -> dict[str, Any]:
    out = StringIO()
    call_command("queue", "--json", stdout=out)
    members: dict[str, Any] = json.loads(out.getvalue())
    return members


def fill(echo: Agent) -> tuple[Task, Task, Task]:
    """Queued tasks, one whose process is silent, one that is overdue soon, one that nobody answers."""
    now = timezone.now()
    patient = make_agent("patient", answer_within_seconds=7200)
    for hours in (1, 2):
        make_task(echo, state=TaskState.SUBMITTED, at=now - hours * HOUR, lease_until=now + HOUR)
    fields = {"state": TaskState.WORKING, "started_at": now - HOUR}
    lost = make_task(echo, worker="web-gone", at=now - HOUR, lease_until=now - timedelta(seconds=3), **fields)
    due = now + timedelta(seconds=200)
    late = make_task(echo, worker="web-here", at=now - HOUR, lease_until=now + HOUR, deadline_at=due, **fields)
    silent = make_task(patient, state=TaskState.INPUT_REQUIRED, at=now - timedelta(seconds=7100))
    make_task(echo, state=TaskState.AUTH_REQUIRED, at=now - HOUR)
    make_task(echo, state=TaskState.COMPLETED, at=now)
    beat = {"role": "web", "started_at": now - HOUR}
    Process.objects.create(origin="web-here", until=now + HOUR, runs=1, **beat)
    Process.objects.create(origin="web-gone", until=now - timedelta(seconds=3), runs=1, **beat)
    return lost, late, silent


def test_an_empty_queue(staff: Client, echo: Agent) -> None:
    page = Page(staff.get("/queue/"))
    assert page.text("queue-size") == "Nothing waits to be run."
    assert page.text("queue-agents") == "Unfinished tasks No task is unfinished."
    assert page.text("queue-doomed") == "About to be failed or repeated None within five minutes."
    assert page.text("queue-processes") == "Processes No process has been heard. Nothing is run."
    out = StringIO()
    call_command("queue", stdout=out)
    assert out.getvalue() == "0 queued\nNo process is alive: nothing is run.\n"


def test_the_queue_by_agent_and_process(staff: Client, echo: Agent) -> None:
    lost, late, silent = fill(echo)
    page = Page(staff.get("/queue/"))
    assert page.text("queue-size") == "2 queued, the oldest 2 h ago"
    assert page.text("queue-agents").removeprefix(
        "Unfinished tasks Agent Queued Oldest Running Oldest Wait for an answer Oldest "
    ) == ("echo web 2 2 h ago 2 1 h ago 1 1 h ago patient web 0 0 1 1 h ago")
    doomed = page.text("queue-doomed")
    for task, reason in ((lost, "Its process web-gone is silent."), (late, "Its deadline."), (silent, "Nobody has")):
        assert page.find("a", href=f"/tasks/{task.pk}/")
        assert reason in doomed
    assert "web-here Alive 1 1 h ago" in page.text("queue-processes")
    assert "web-gone Silent 1 1 h ago" in page.text("queue-processes")


def test_the_queue_for_programs(db: None, echo: Agent) -> None:
    lost, late, silent = fill(echo)
    found = queue_json()
    assert (found["queued"], round(found["oldestQueuedSeconds"] / 60)) == (2, 120)
    assert [(a["agent"], a["queued"], a["running"], a["waiting"]) for a in found["agents"]] == [
        ("echo", 2, 2, 1),
        ("patient", 0, 0, 1),
    ]
    assert {(p["process"], p["alive"], p["runs"]) for p in found["processes"]} == {
        ("web-here", True, 1),
        ("web-gone", False, 1),
    }
    assert [(t["task"], t["agent"]) for t in found["aboutToFail"]] == [
        (lost.pk, "echo"),
        (silent.pk, "patient"),
        (late.pk, "echo"),
    ]


@pytest.mark.parametrize("skew", [-60, 60])
def test_the_clock_of_the_database_says_who_is_alive(
    db: None, echo: Agent, monkeypatch: pytest.MonkeyPatch, skew: int
) -> None:
    """Leases and heartbeats are made by it, and that of the machine which looks may be wrong."""
    now = timezone.now()
    soon, over = now + timedelta(seconds=30), now - timedelta(seconds=30)
    for origin, until in (("web-here", soon), ("web-gone", over)):
        make_task(echo, state=TaskState.WORKING, started_at=now, worker=origin, lease_until=until)
        Process.objects.create(origin=origin, role="web", started_at=now, until=until, runs=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now + timedelta(seconds=skew))
    found = queue_json()
    assert {(p["process"], p["alive"]) for p in found["processes"]} == {("web-here", True), ("web-gone", False)}
    assert [t["reason"] for t in found["aboutToFail"]] == ["Its process web-gone is silent."]


def test_the_runs_of_a_task(staff: Client, echo: Agent) -> None:
    task = make_task(
        echo, state=TaskState.COMPLETED, at=START + timedelta(seconds=9), attempt=4, worker="web-c",
        started_at=START + timedelta(seconds=8),
    )  # fmt: skip
    rows = [(1, "web-a", TaskState.WORKING, True, 0, 3), (3, "web-b", TaskState.INPUT_REQUIRED, False, 4, 6)]
    for attempt, worker, state, fenced, start, end in rows:
        Execution.objects.create(
            task=task, attempt=attempt, worker=worker, state=state.number, fenced=fenced,
            started_at=START + timedelta(seconds=start), ended_at=START + timedelta(seconds=end),
        )  # fmt: skip
    assert Page(staff.get(f"/tasks/{task.pk}/")).text("runs") == (
        "Runs 3 Attempt Started Ended Outcome and process "
        "1 12:00:00.000 12:00:03.000 3.0 s taken from its process web-a "
        "3 12:00:04.000 12:00:06.000 2.0 s waits: input required web-b "
        "4 12:00:08.000 12:00:09.000 1.0 s completed web-c"
    )


def test_the_run_that_goes_on(staff: Client, echo: Agent) -> None:
    beat = START + timedelta(seconds=20)
    due = START + HOUR
    task = make_task(
        echo, state=TaskState.WORKING, worker="web-a", started_at=START, lease_until=beat, deadline_at=due
    )  # fmt: skip
    assert Page(staff.get(f"/tasks/{task.pk}/")).text("runs") == (
        "Runs 1 deadline 2026-03-01 13:00:00.000 Attempt Started Ended Outcome and process "
        "1 12:00:00.000 runs web-a its heartbeat is good until 12:00:20.000"
    )
    queued = make_task(echo, state=TaskState.SUBMITTED)
    assert Page(staff.get(f"/tasks/{queued.pk}/")).text("runs").endswith("1 queued")
