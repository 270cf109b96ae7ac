"""kill -9 of the web process: what was acknowledged is there, and nothing stays WORKING for ever.

One process is killed once, under load, and each test looks at another side of what is left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from protocol.states import TaskState
from tasks_app.execution.sweeping import ABANDONED_TEXT
from tests.cases.reading import CHUNKS, assemble, at_work, state, texts
from tests.durability.host import BOUND, Host
from tests.durability.load import Load, Sent, send
from tests.support.events import Event


@dataclass
class Aftermath:
    """What callers knew when the process was killed, and how long it took until everything had ended."""

    stepping: str
    holding: str
    elsewhere: str
    seen: list[Event]
    followed: list[Event]
    acknowledged: list[str]
    unanswered: list[Sent]
    states: dict[str, TaskState]
    seconds: float


@pytest.fixture(scope="module")
def aftermath(host: Host) -> Aftermath:
    holding: str = at_work(host.agent("hold"))["id"]
    elsewhere: str = at_work(host.agent("steps-worker"), "steps 20 200")["id"]
    with Load(host) as load, host.agent("steps").say_streaming("steps 20 500") as stream:
        seen = stream.until("WORKING")
        seen += [stream.next() for _ in range(3)]
        load.wait_for_more(200)
        killed = host.kill("web")
        at = time.monotonic()
        host.wait_for_another("web", killed)
        load.wait_for_more(100)
    stepping: str = seen[0].response["task"]["id"]
    with host.agent("steps").subscribe(stepping) as again:
        followed = again.rest()
    ids = [stepping, holding, elsewhere, *load.acknowledged]
    states = host.wait_for_ends(ids, BOUND - (time.monotonic() - at))
    seconds = time.monotonic() - at
    return Aftermath(stepping, holding, elsewhere, seen, followed, load.acknowledged, load.unanswered, states, seconds)


def stored(host: Host, slug: str, task_id: str) -> dict[str, Any]:
    return host.agent(slug).get(task_id)


@pytest.mark.spec("3.1.3")
def test_its_tasks_are_failed_with_a_reason(host: Host, aftermath: Aftermath) -> None:
    assert aftermath.seconds < BOUND
    for slug, task_id in (("steps", aftermath.stepping), ("hold", aftermath.holding)):
        task = stored(host, slug, task_id)
        assert state(task) == "FAILED"
        assert task["status"]["message"]["parts"] == [{"text": ABANDONED_TEXT}]
    host.check_books([aftermath.stepping, aftermath.holding])


@pytest.mark.spec("3.1.6")
def test_no_chunk_is_lost_or_doubled(host: Host, aftermath: Aftermath) -> None:
    """What a caller saw before the kill and what it gets by subscribing again fit together."""
    (chunks,) = texts(stored(host, "steps", aftermath.stepping)["artifacts"])
    assert chunks == CHUNKS[: len(chunks)]
    assert 3 <= len(chunks) < 20
    assert chunks[: len(assemble(aftermath.seen))] == assemble(aftermath.seen)
    assert assemble(aftermath.followed) == chunks
    assert [event.state for event in aftermath.followed] == ["WORKING", "FAILED"]
    assert aftermath.followed[0].id >= aftermath.seen[-1].id


def test_the_worker_goes_on(host: Host, aftermath: Aftermath) -> None:
    task = stored(host, "steps-worker", aftermath.elsewhere)
    assert (state(task), texts(task["artifacts"])) == ("COMPLETED", [CHUNKS[:20]])
    host.check_books([aftermath.elsewhere])


def test_what_was_acknowledged_is_there_and_has_ended(host: Host, aftermath: Aftermath) -> None:
    ids = aftermath.acknowledged
    assert len(ids) == len(set(ids)) >= 300
    host.check_books(ids)
    assert {aftermath.states[task_id] for task_id in ids} <= {TaskState.COMPLETED, TaskState.FAILED}
    failed = [task_id for task_id in ids if aftermath.states[task_id] is TaskState.FAILED]
    assert len(failed) < len(ids) / 2
    bodies = host.query(
        "SELECT count(*) FROM tasks_app_task WHERE id = ANY(%s) AND strpos(status, %s) = 0", [failed, ABANDONED_TEXT]
    )
    assert bodies == [(0,)]


@pytest.mark.spec("3.3.1")
def test_a_send_without_a_reply_can_be_sent_again(host: Host, aftermath: Aftermath) -> None:
    """With its messageId it is one task, whether the first one had arrived or not."""
    assert aftermath.unanswered
    again = [send(host, sent)["result"]["task"]["id"] for sent in aftermath.unanswered]
    twice = [send(host, sent)["result"]["task"]["id"] for sent in aftermath.unanswered]
    assert again == twice
    message_ids = [params["message"]["messageId"] for _, params in aftermath.unanswered]
    counts = host.query(
        "SELECT message_id, count(*) FROM tasks_app_message WHERE message_id = ANY(%s) GROUP BY 1", [message_ids]
    )
    assert dict(counts) == dict.fromkeys(message_ids, 1)
    host.wait_for_ends(again, BOUND)
    host.check_books(again)
