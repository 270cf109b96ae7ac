"""kill -9 of the worker: its tasks are FAILED, those that nobody had begun are run, the web process goes on."""

from __future__ import annotations

import time

import pytest

from tasks_app.execution.sweeping import ABANDONED_TEXT
from tests.cases.reading import CHUNKS, assemble, at_work, state, states, texts
from tests.durability.host import BOUND, Host
from tests.support.deployment import wait_until


@pytest.mark.spec("3.1.6")
def test_a_killed_worker(host: Host) -> None:
    steps, hold = host.agent("steps-worker"), host.agent("hold-worker")
    holding = at_work(hold)["id"]
    with steps.say_streaming("steps 20 200") as stream:
        seen = stream.until("WORKING")
        seen += [stream.next() for _ in range(3)]
        stepping = seen[0].response["task"]["id"]
        killed = host.kill("worker")
        at = time.monotonic()
        queued = [steps.start(f"steps {number} 0")["id"] for number in range(1, 4)]
        assert texts(host.agent("steps").say("steps 2 0")["artifacts"]) == [CHUNKS[:2]]
        seen += stream.rest()  # The stream stays open and tells of the end.
    host.wait_for_ends([stepping, holding, *queued], BOUND - (time.monotonic() - at))
    assert time.monotonic() - at < BOUND
    host.wait_for_another("worker", killed)

    assert states(seen)[-2:] == ["WORKING", "FAILED"]
    failed = steps.get(stepping)
    (chunks,) = texts(failed["artifacts"])
    assert chunks == assemble(seen) == CHUNKS[: len(chunks)]
    assert 3 <= len(chunks) < 20
    for task in (failed, hold.get(holding)):
        assert state(task) == "FAILED"
        assert task["status"]["message"]["parts"] == [{"text": ABANDONED_TEXT}]
    for number, task_id in enumerate(queued, start=1):
        task = steps.get(task_id)
        assert (state(task), texts(task["artifacts"])) == ("COMPLETED", [CHUNKS[:number]])
    host.check_books([stepping, holding, *queued])
    host.wait_for_worker()


def test_a_worker_is_killed_while_a_run_waits_in_it(host: Host) -> None:
    """The task goes on waiting, for as long as it takes; its answer begins a new run in the next worker."""
    peer = host.agent("wait-worker")
    task_id = peer.say("wait")["id"]
    waiting = "SELECT 1 FROM tasks_app_task WHERE id = %s AND waiting_attempt = attempt"
    wait_until(lambda: host.query(waiting, [task_id]), "the run to wait")
    killed = host.kill("worker")
    host.wait_for_another("worker", killed)
    host.wait_for_worker()
    over = "SELECT 1 FROM tasks_app_task WHERE id = %s AND lease_until < now()"
    wait_until(lambda: host.query(over, [task_id]), "the lease of the dead worker to be over")
    assert state(peer.get(task_id)) == "INPUT_REQUIRED"
    done = peer.say("for two", taskId=task_id)
    assert (state(done), texts(done["artifacts"])) == ("COMPLETED", [["for two"]])
    host.check_books([task_id])
