"""Area durability: a broker that is away, a worker that dies (§3.1.3)."""

from __future__ import annotations

import pytest

from a2a_host.services.processes import Process
from tests.cases.reading import CHUNKS, assemble, state, texts
from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web


@pytest.mark.case("T27")
@pytest.mark.spec("3.1.3")
def test_a_send_without_a_broker_is_kept(alice: Caller, lonely_web: Web, json_binding: str) -> None:
    """Taken at once, as a task that waits for a worker; nobody's reply hangs on the broker."""
    peer = alice.before(lonely_web).at("worker-echo", json_binding)
    task = peer.start("later")
    assert state(task) == "SUBMITTED"
    assert peer.get(task["id"]) == task
    assert peer.list()["totalSize"] == 1
    assert state(alice.before(lonely_web).at("echo", json_binding).say()) == "COMPLETED"
    assert state(peer.cancel(task["id"])) == "CANCELED"


@pytest.mark.case("T25")
@pytest.mark.spec("3.1.3")
def test_a_task_whose_worker_was_killed_ends(
    alice: Caller, deployment: Deployment, worker: Process, of_workers: dict[str, str]
) -> None:
    """FAILED, to a stream that is open and in the store. No chunk is there twice."""
    steps = alice.jsonrpc("steps-worker")
    with steps.say_streaming("steps 20 200") as stream:
        events = [stream.next()]
        while len(assemble(events)) < 3:
            events.append(stream.next())
        worker.kill()
        events += stream.rest()
    assert events[-1].response["statusUpdate"]["status"]["message"]["parts"] == [
        {"text": "The process that ran this task stopped, so its result is unknown."}
    ]
    task = steps.get(events[0].response["task"]["id"])
    assert (state(task), texts(task["artifacts"])) == ("FAILED", [assemble(events)])
    assert assemble(events) == CHUNKS[: len(assemble(events))]
    deployment.start_worker(**of_workers)
    assert texts(steps.say("steps 2 1")["artifacts"]) == [CHUNKS[:2]]
