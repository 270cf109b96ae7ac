"""Processes that come back from the dead, that block and that are told to end: what callers and the database see."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tasks_app.execution.execution import STOPPED_TEXT
from tasks_app.execution.sweeping import ABANDONED_TEXT
from tests.cases.reading import CHUNKS, assemble, at_work, only_grow, state, states, texts
from tests.recovery.conftest import Site
from tests.support.deployment import wait_until
from tests.support.events import Event

BOUND = 6.0
"""Seconds until a frozen process is found with leases of one second, on a busy machine."""


def said(task: dict[str, Any]) -> str:
    (part,) = task["status"]["message"]["parts"]
    text: str = part["text"]
    return text


def bodies(events: list[Event]) -> list[dict[str, Any]]:
    """Status and artifact of each event as the log keeps them."""
    updates = [next(iter(event.response.values())) for event in events]
    return [update.get("artifact") or update["status"] for update in updates]


@pytest.mark.spec("3.1.2")
def test_a_frozen_process_is_fenced_off(site: Site) -> None:
    """It sleeps through its lease, wakes up, and nothing that its agent still says reaches the journal, its own stream,
    another one or the webhook."""
    config = {"taskPushNotificationConfig": {"url": site.receiver.url("/frozen")}}
    with site.agent("steps", site.first).say_streaming("steps 500 20", configuration=config) as stream:
        seen = stream.until("WORKING")
        task_id = seen[0].response["task"]["id"]
        with site.agent("steps", site.second).subscribe(task_id) as elsewhere:
            with site.frozen(site.first):
                frozen_at = time.monotonic()
                heard = elsewhere.rest()
                assert time.monotonic() - frozen_at < BOUND
                before = site.log(task_id)
            seen += stream.rest()
    wait_until(lambda: site.runs_of(site.first.process) == 0, "the run to be dropped")
    assert states(heard)[-1] == states(seen)[-1] == "FAILED"
    assert site.log(task_id) == before
    assert [json.loads(body) for _, _, body in before] == bodies(seen[1:]), "the stream is the log"
    assert assemble(seen) == assemble(heard) == CHUNKS[: len(assemble(seen))] or len(assemble(seen)) > len(CHUNKS)
    task = site.agent("steps", site.first).get(task_id)
    assert (state(task), said(task)) == ("FAILED", ABANDONED_TEXT)
    assert [attempt for _, attempt, _ in before] == [1] * (len(before) - 1) + [2]
    deliveries = site.receiver.wait_for_state("/frozen", "TASK_STATE_FAILED")
    notified = [next(iter(d.json.values())) for d in deliveries]
    assert [n.get("artifact") or n["status"] for n in notified] == bodies(seen[1:]), "the webhook was told the log"
    assert state(site.agent("echo", site.first).say()) == "COMPLETED", "it serves on"


@pytest.mark.spec("3.1.2")
def test_the_run_of_a_frozen_process_is_repeated_by_another(site: Site) -> None:
    """Both streams, also the one of the frozen process, lead to each chunk once."""
    with site.agent("steps-again", site.first).say_streaming("steps 30 50") as stream:
        seen = stream.until("WORKING")
        seen += [stream.next() for _ in range(3)]
        task_id = seen[0].response["task"]["id"]
        with site.agent("steps-again", site.second).subscribe(task_id) as elsewhere, site.frozen(site.first):
            heard = elsewhere.rest()
        seen += stream.rest()
    for events in (seen, heard):
        assert only_grow(events)
        assert assemble(events) == CHUNKS
        assert states(events)[-1] == "COMPLETED"
    task = site.agent("steps-again", site.first).get(task_id)
    assert texts(task["artifacts"]) == [CHUNKS]
    runs = site.deployment.query(
        "SELECT attempt, worker, fenced FROM tasks_app_execution WHERE task_id = %s", [task_id]
    )
    assert runs == [(1, site.origin(site.first.process), True)]
    second = site.origin(site.second.process)
    assert site.task(task_id, "attempt, worker, retries") == (2, second, 1)
    attempts = [attempt for _, attempt, _ in site.log(task_id)]
    assert attempts == sorted(attempts)


def test_a_process_that_is_blocked_is_not_dead(site: Site) -> None:
    """Its event loop stands still for three leases."""
    task = site.agent("blocking", site.first).say("3")
    assert state(task) == "COMPLETED"
    assert site.task(task["id"], "attempt") == (1,)


def test_a_web_process_that_is_told_to_end(site: Site) -> None:
    """What is nearly done is done, what may be repeated is done by another process at once, what may not FAILS, and who
    waits hears of it."""
    here = site.first
    again = at_work(site.agent("hold-again", here))["id"]
    with ThreadPoolExecutor(3) as pool, site.agent("steps-again", here).say_streaming("steps 30 50") as stream:
        seen = stream.until("WORKING")
        stepping = seen[0].response["task"]["id"]
        quick = pool.submit(site.agent("steps", here).say, "steps 2 100")
        slow = pool.submit(site.agent("hold", here).say, "hold")
        wait_until(lambda: site.runs_of(here.process) >= 4, "the runs")
        asked_at = time.monotonic()
        here.process.ask_to_stop()
        assert (state(quick.result()), texts(quick.result()["artifacts"])) == ("COMPLETED", [CHUNKS[:2]])
        assert (state(slow.result()), said(slow.result())) == ("FAILED", STOPPED_TEXT)
        seen += stream.rest()
    second = site.origin(site.second.process)
    for task_id in (again, stepping):
        wait_until(lambda task_id=task_id: site.task(task_id, "worker")[0] == second, "the other process")
        assert site.task(task_id, "attempt, retries") == (2, 0)
    assert here.process.wait(10)
    assert time.monotonic() - asked_at < 10
    peer = site.agent("steps-again", site.second)
    wait_until(lambda: state(peer.get(stepping)) == "COMPLETED", "the repeated run")
    assert texts(peer.get(stepping)["artifacts"]) == [CHUNKS]
    assert assemble(seen) == CHUNKS[: len(assemble(seen))]
    site.agent("hold-again", site.second).cancel(again)
    here.restart()


def test_a_web_process_whose_journal_ends(site: Site) -> None:
    """It ends too, so that it is started again, and callers do not wait for ever."""
    web = site.start_web()
    with suppress(httpx.NetworkError, httpx.RemoteProtocolError):  # The reply may have been on its way already.
        site.agent("saboteur", web).say()
    assert web.process.wait(10)
    assert web.process.exit_code == os.EX_SOFTWARE
    assert "The journal ended, and the host cannot do without it" in web.process.service.log.read_text()
    web.restart()
    assert state(site.agent("echo", web).say()) == "COMPLETED"
    web.close()


def test_a_worker_whose_journal_ends(site: Site) -> None:
    """What it had stored is stored: the result of the run that was last."""
    task_id = site.agent("worker-saboteur", site.second).start()["id"]
    assert site.worker.wait(10)
    assert site.worker.exit_code == os.EX_SOFTWARE
    assert "The journal ended, and the host cannot do without it" in site.worker.service.log.read_text()
    site.worker = site.start_worker()
    assert state(site.agent("worker-saboteur", site.second).get(task_id)) == "COMPLETED"
    assert state(site.agent("steps-worker", site.second).say("steps 1 1")) == "COMPLETED"


def test_a_worker_that_is_told_to_end(site: Site) -> None:
    """Its runs are queued again, what is queued stays so, and the next worker has all of it."""
    peer = site.agent("worker-again", site.second)
    running = at_work(peer)["id"]
    failing = at_work(site.agent("hold-worker", site.second))["id"]
    origin = site.origin(site.worker)
    site.worker.ask_to_stop()
    assert site.worker.wait(10)
    assert site.task(running, "attempt, worker, retries, state") == (2, None, 0, 2)
    assert said(site.agent("hold-worker", site.second).get(failing)) == STOPPED_TEXT
    assert site.deployment.query("SELECT count(*) FROM tasks_app_process WHERE origin = %s", [origin]) == [(0,)]
    queued = peer.start("hold 0")["id"]
    (line, *_) = site.deployment.run(("queue", "--json"))[0].splitlines()
    backlog = json.loads(line)
    assert backlog["queued"] == 2
    assert [(a["agent"], a["queued"], a["running"]) for a in backlog["agents"]] == [("worker-again", 2, 0)]
    assert backlog["oldestQueuedSeconds"] > 0
    assert sorted(p["role"] for p in backlog["processes"] if p["alive"]) == ["web", "web"]
    site.worker = site.start_worker()
    wait_until(lambda: state(peer.get(queued)) == "COMPLETED", "the queued task")
    wait_until(lambda: site.task(running, "worker")[0] == site.origin(site.worker), "the run")
    peer.cancel(running)
    runs = site.deployment.query("SELECT attempt, worker FROM tasks_app_execution WHERE task_id = %s", [running])
    assert runs == [(1, origin)]
