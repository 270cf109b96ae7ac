"""CancelTask over process borders, and of every race with the end there is one winner (§3.1.5)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cases.reading import at_work, state
from tests.durability.host import Host
from tests.support.deployment import wait_until
from tests.support.refusals import Refused

RACES = 100


@pytest.fixture(scope="module")
def traced(host: Host) -> str:
    """An agent in the worker that writes down when its code starts and stops."""
    executor = ("--executor", "tests.cases.executors.Traced", "--execution", "worker")
    host.copy.manage("agent", "register", "traced-worker", *executor)
    peer = host.agent("traced-worker")
    card = f"{peer.base}{peer.path}/.well-known/agent-card.json"
    wait_until(lambda: host.client.get(card).status_code == 200, "the agent")
    return "traced-worker"


@pytest.mark.spec("3.1.5")
def test_a_cancel_reaches_the_coroutine_in_the_worker(host: Host, traced: str, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    peer = host.agent(traced)
    task = peer.start(str(diary))
    wait_until(lambda: diary.exists() and diary.read_text() == "started\n", "the agent's code")
    assert state(peer.cancel(task["id"])) == "CANCELED"
    assert diary.read_text() == "started\nstopped\n"
    host.check_books([task["id"]])


@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("slug", ["hold", "hold-worker"])
def test_every_cancel_ends_its_task(host: Host, slug: str) -> None:
    peer = host.agent(slug)
    ids = [at_work(peer)["id"] for _ in range(10)]
    for task_id in ids:
        assert state(peer.cancel(task_id)) == "CANCELED"
    host.check_books(ids)


@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_a_cancel_and_the_end_at_the_same_moment(host: Host, slug: str) -> None:
    peer = host.agent(slug)

    def race(_: int) -> str:
        task_id: str = peer.start("steps 1 1")["id"]
        try:
            reply = state(peer.cancel(task_id))
        except Refused as refusal:
            reply = refusal.reason
        final = state(peer.get(task_id))
        assert (reply, final) in [("CANCELED", "CANCELED"), ("TASK_NOT_CANCELABLE", "COMPLETED")]
        return task_id

    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(race, range(RACES)))
    assert len(set(ids)) == RACES
    host.check_books(ids)
