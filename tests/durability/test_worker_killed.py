"""kill -9 of the worker: its tasks are FAILED, those that nobody had begun are run, the web process goes on."""

from __future__ import annotations

import time

import pytest

from tasks_app.execution.sweeping import ABANDONED_TEXT
from tests.cases.reading import CHUNKS, assemble, at_work, state, states, texts
from tests.durability.host import BOUND, Host


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
