"""Area concurrency: of every race there is one winner (§3.1.5, §3.3.3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.cases.racing import at_once
from tests.cases.reading import at_work, state, terminal_events, texts
from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web
from tests.support.refusals import Refused


@pytest.mark.case("T21")
@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize(("slug", "races"), [("steps", 100), ("steps-worker", 50)])
def test_a_cancel_and_the_end_at_the_same_moment(
    alice: Caller, deployment: Deployment, binding: str, slug: str, races: int, worker: object
) -> None:
    peer = alice.at(slug, binding)

    def race(number: int) -> str:
        task = peer.start(f"steps 1 {number % 25}")
        try:
            reply = state(peer.cancel(task["id"]))
        except Refused as refusal:
            reply = refusal.reason
        final = state(peer.get(task["id"]))
        assert (reply, final) in [("CANCELED", "CANCELED"), ("TASK_NOT_CANCELABLE", "COMPLETED")]
        assert terminal_events(deployment, task["id"]) == 1
        return reply

    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(race, range(races)))
    assert len(outcomes) == peer.list()["totalSize"] == races


@pytest.mark.case("T21")
@pytest.mark.spec("3.1.5")
def test_ten_cancels_at_once(alice: Caller, deployment: Deployment, binding: str) -> None:
    hold = alice.at("hold", binding)
    task = hold.start()
    outcomes = at_once([lambda: hold.cancel(task["id"])] * 10)
    replies = [o.reason if isinstance(o, Refused) else state(o) for o in outcomes]
    assert set(replies) <= {"CANCELED", "TASK_NOT_CANCELABLE"}
    assert "CANCELED" in replies
    assert terminal_events(deployment, task["id"]) == 1


@pytest.mark.case("T23")
@pytest.mark.spec("3.3.3")
@pytest.mark.parametrize("slug", ["hold", "hold-worker"])
def test_a_busy_task_takes_no_message(alice: Caller, binding: str, slug: str, worker: object) -> None:
    peer = alice.at(slug, binding)
    before = task = at_work(peer)
    for send in (peer.say, peer.start, peer.say_streaming):
        with alice.refused("UNSUPPORTED_OPERATION"):
            send("more", taskId=task["id"])
    assert peer.get(task["id"]) == before
    peer.cancel(task["id"])


@pytest.mark.case("T23")
@pytest.mark.spec("3.3.3")
def test_of_ten_follow_ups_at_once_one_is_taken(
    alice: Caller, deployment: Deployment, binding: str, second_web: Web
) -> None:
    """Over two web processes."""
    peers = [alice.at("ask", binding), alice.before(second_web).at("ask", binding)]
    task = peers[0].say("hi")
    outcomes = at_once([partial(peers[n % 2].say, f"answer {n}", taskId=task["id"]) for n in range(10)])
    (winner,) = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Refused)]
    assert {o.reason for o in outcomes if isinstance(o, Refused)} == {"UNSUPPORTED_OPERATION"}
    done = peers[0].get(task["id"])
    assert texts(done["artifacts"]) == [[f"answer {winner}"]]
    assert [m["parts"][0]["text"] for m in done["history"] if m["role"] == "ROLE_USER"] == ["hi", f"answer {winner}"]
    assert terminal_events(deployment, task["id"]) == 1
