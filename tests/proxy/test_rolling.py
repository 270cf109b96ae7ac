"""Every process ends once under load, one after the other: nothing is lost, nothing comes twice, no call fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.cases.reading import state
from tests.proxy.clients import Books, Load
from tests.proxy.conftest import SETTINGS, Site
from tests.support.deployment import Web, wait_until
from tests.support.peers import message
from tests.support.refusals import Refused

pytestmark = pytest.mark.timeout(400)  # Many processes start here.
_BOOKS = """SELECT t.id, t.state, count(e.seq) FILTER (WHERE e.kind = 1 AND e.body ~ %s),
    count(e.seq) = t.last_seq AND coalesce(max(e.seq), 0) = t.last_seq
    FROM tasks_app_task t LEFT JOIN tasks_app_event e ON e.task_id = t.id GROUP BY t.id"""
_ENDING = '^{"state":"TASK_STATE_(COMPLETED|FAILED|CANCELED|REJECTED)"'
_LEFT = """SELECT count(*) FROM tasks_app_task WHERE owner = 'admin' AND state IN (1, 2)"""


@dataclass
class Aftermath:
    """What clients were told while one process after the other ended, and how those ended that were asked to."""

    books: Books
    endings: list[str]


def replace_web(web: Web) -> str:
    """Restart as a supervisor does: connections wait at the listening socket. Returns how the old process ended."""
    web.stop()
    ending = web.process.ending
    web.restart()
    return ending


@pytest.fixture(scope="module")
def aftermath(site: Site) -> Aftermath:
    with Load(site) as load:
        load.wait_for_more(20)
        site.workers[0].kill()
        load.wait_for_more(10)
        site.workers[0] = site.deployment.start_worker(**SETTINGS)
        endings = [replace_web(site.webs[0])]
        load.wait_for_more(10)
        site.workers[1].ask_to_stop()
        endings.append(replace_web(site.webs[1]))
        load.wait_for_more(10)
    assert site.workers[1].wait(20)
    return Aftermath(load.books, [*endings, site.workers[1].ending])


def test_no_client_missed_or_repeated_anything(aftermath: Aftermath) -> None:
    assert aftermath.books.complaints == []
    assert aftermath.books.resumed > 0, "streams were open when their process ended"


def test_what_was_begun_has_ended_once(site: Site, aftermath: Aftermath) -> None:
    wait_until(lambda: site.deployment.query(_LEFT) == [(0,)], "the end of every task")
    books = {task: tuple(book) for task, *book in site.deployment.query(_BOOKS, [_ENDING])}
    told = aftermath.books.ended
    assert len(told) >= 50
    assert set(told) <= set(books)
    assert {task: book for task, book in books.items() if task in told and book[1:] != (1, True)} == {}


def test_only_what_ran_in_the_killed_worker_has_failed(aftermath: Aftermath) -> None:
    outcomes = list(aftermath.books.ended.values())
    assert set(outcomes) <= {"COMPLETED", "FAILED"}
    assert outcomes.count("FAILED") <= 8, "as many as a worker runs at a time"


def test_the_processes_ended_by_themselves(aftermath: Aftermath) -> None:
    assert set(aftermath.endings) <= {"exit code 0", "SIGTERM"}


def test_a_send_that_waits_is_answered_or_told_to_come_back(site: Site) -> None:
    """Within the grace time it is answered; after it, it is refused, its task goes on, and the next process answers."""
    short, long = site.replica(0, "steps-worker"), site.replica(0, "hold-worker")
    other = site.replica(1, "hold-worker")
    held = {"message": message("hold 60")}
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(long.send, held)
        (task,) = wait_until(lambda: other.list(status="TASK_STATE_WORKING")["tasks"], "the long one")
        answered = pool.submit(short.say, "steps 3 50")
        wait_until(lambda: short.list(status="TASK_STATE_WORKING")["tasks"], "the short one")
        site.webs[0].stop()
        assert state(answered.result()) == "COMPLETED"
        with pytest.raises(Refused) as refusal:
            waiting.result()
        assert refusal.value.reason == "UNAVAILABLE"
        assert state(other.get(task["id"])) == "WORKING"
        again = pool.submit(other.send, held)
        other.cancel(task["id"])
        assert (again.result()["task"]["id"], state(again.result()["task"])) == (task["id"], "CANCELED")
    site.webs[0].restart()
