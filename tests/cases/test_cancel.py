"""Area lifecycle, cancelling: it reaches the code, the streams and the store, and an end is final (§3.1.5)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cases.reading import TERMINAL, ended, state, terminal_events
from tests.support.callers import Caller
from tests.support.deployment import Deployment, wait_until


@pytest.mark.case("T17")
@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("slug", ["hold", "hold-worker"])
def test_a_cancel_reaches_reply_streams_and_store(alice: Caller, binding: str, slug: str, worker: object) -> None:
    peer = alice.at(slug, binding)
    with peer.say_streaming("hold") as stream:
        task = stream.next().response["task"]
        if state(task) == "SUBMITTED":
            stream.until("WORKING")
        with peer.subscribe(task["id"]) as second:
            assert second.next().state == "WORKING"
            assert state(peer.cancel(task["id"])) == "CANCELED"
            assert [event.state for event in stream.rest()] == ["CANCELED"]
            assert [event.state for event in second.rest()] == ["CANCELED"]
    assert state(peer.get(task["id"])) == "CANCELED"


@pytest.mark.case("T17")
@pytest.mark.spec("3.1.5")
def test_a_cancel_stops_the_code(alice: Caller, binding: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    diary = tmp_path / "diary"
    diary.touch()
    diary.chmod(0o666)
    traced = alice.at("traced", binding)
    task = traced.start(str(diary))
    wait_until(lambda: diary.read_text() == "started\n", "the agent's code")
    assert state(traced.cancel(task["id"])) == "CANCELED"
    wait_until(lambda: diary.read_text() == "started\nstopped\n", "the end of the agent's code")


@pytest.mark.case("T17")
@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("slug", ["ask", "auth"])
def test_a_waiting_task_can_be_cancelled(alice: Caller, binding: str, slug: str) -> None:
    peer = alice.at(slug, binding)
    task = peer.say("hi")
    cancelled = peer.cancel(task["id"], metadata={"reason": "late"})
    assert (cancelled["id"], state(cancelled)) == (task["id"], "CANCELED")
    assert peer.get(task["id"]) == cancelled
    assert cancelled["history"][-1] == task["status"]["message"]


@pytest.mark.case("T17")
@pytest.mark.spec("3.1.5")
def test_a_blocked_send_returns_when_its_task_is_cancelled(alice: Caller, binding: str) -> None:
    hold = alice.at("hold", binding)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(hold.say, "hold")
        (task,) = wait_until(lambda: hold.list(status="TASK_STATE_WORKING")["tasks"], "the task")
        hold.cancel(task["id"])
        assert state(reply.result(10)) == "CANCELED"


@pytest.mark.case("T19")
@pytest.mark.case("T20")
@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("outcome", sorted(TERMINAL))
def test_an_ended_task_cannot_be_cancelled(alice: Caller, deployment: Deployment, binding: str, outcome: str) -> None:
    peer, task = ended(alice, binding, outcome)
    before = peer.get(task["id"])
    for _ in range(2):
        with alice.refused("TASK_NOT_CANCELABLE") as refusal:
            peer.cancel(task["id"])
        assert refusal.value.metadata == {"taskId": task["id"], "state": f"TASK_STATE_{outcome}"}
    assert peer.get(task["id"]) == before
    assert terminal_events(deployment, task["id"]) == 1


@pytest.mark.case("T19")
@pytest.mark.spec("3.1.5")
def test_what_is_not_there_cannot_be_cancelled(alice: Caller, binding: str) -> None:
    with alice.refused("TASK_NOT_FOUND") as refusal:
        alice.at("hold", binding).cancel("none")
    assert refusal.value.metadata == {"taskId": "none"}
