"""CancelTask over process borders, and of every race with the end there is one winner (§3.1.5)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from protocol.states import TaskState
from tests.cases.reading import at_work, state
from tests.durability.host import BOUND, Host
from tests.support.deployment import wait_until
from tests.support.refusals import Refused

RACES = 100


@pytest.fixture(scope="module")
def traced(host: Host) -> str:
    """An agent in the worker that writes down when its code starts and stops."""
    return register(host, "traced-worker", "Traced")


def register(host: Host, slug: str, executor: str) -> str:
    """Have an agent in the worker; its slug."""
    code = ("--executor", f"tests.cases.executors.{executor}", "--execution", "worker")
    host.copy.manage("agent", "register", slug, *code)
    peer = host.agent(slug)
    card = f"{peer.base}{peer.path}/.well-known/agent-card.json"
    wait_until(lambda: host.client.get(card).status_code == 200, "the agent")
    return slug


@pytest.mark.spec("3.1.5")
def test_a_cancel_reaches_the_coroutine_in_the_worker(host: Host, traced: str, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    peer = host.agent(traced)
    task = peer.start(str(diary))
    wait_until(lambda: diary.exists() and diary.read_text() == "started\n", "the agent's code")
    assert state(peer.cancel(task["id"])) == "CANCELED"
    assert diary.read_text() == "started\nstopped\n"
    host.check_books([task["id"]])


def test_a_person_cancels_through_a_process_that_is_killed(host: Host, tmp_path: Path) -> None:
    """The code stops in another process, and the audit log says who wanted that."""
    diary = tmp_path / "diary"
    peer = host.agent(register(host, "lingering-worker", "Lingering"))
    task = peer.start(str(diary))
    wait_until(lambda: diary.exists() and diary.read_text() == "started\n", "the agent's code")
    with ThreadPoolExecutor(1) as pool, staff(host) as browser:
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        asked = pool.submit(browser.post, f"/tasks/{task['id']}/cancel", data=form)
        wait_until(lambda: diary.read_text() == "started\nstopped\n", "the agent's code to hear of it")
        assert lines(host, task["id"]) == [("admin", "task.cancel", "lingering-worker", "Asked to cancel it.")]
        killed = host.kill("web")
        with pytest.raises(httpx.HTTPError):
            asked.result()
    diary.with_suffix(".go").touch()
    host.wait_for_another("web", killed)
    host.wait_healthy()
    assert set(host.wait_for_ends([task["id"]], BOUND).values()) == {TaskState.CANCELED}
    assert lines(host, task["id"]) == [("admin", "task.cancel", "lingering-worker", "Asked to cancel it.")]
    host.check_books([task["id"]])


def lines(host: Host, task_id: str) -> list[tuple[str, ...]]:
    """The audit log of a task."""
    return host.query("SELECT actor, action, agent, detail FROM tasks_app_auditentry WHERE task_id = %s", [task_id])


@contextmanager
def staff(host: Host) -> Iterator[httpx.Client]:
    """A browser that `admin` has signed in with."""
    url = host.copy.url
    with httpx.Client(base_url=url, trust_env=False, timeout=30, headers={"Referer": url}) as browser:
        browser.get("/admin/login/")
        form = {"username": "admin", "password": host.copy.credentials["admin_password"]}
        answer = browser.post("/admin/login/", data=form | {"csrfmiddlewaretoken": browser.cookies["csrftoken"]})
        assert answer.status_code == 302
        yield browser


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
