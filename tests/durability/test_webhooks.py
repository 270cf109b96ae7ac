"""Webhooks while parts of the host are killed or away: every event arrives, in order, at least once."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.durability.host import Host
from tests.support.deployment import PATIENCE, wait_until
from tests.support.receiver import Receiver

_OVERDUE = "UPDATE tasks_app_pushconfig SET lease_until = now() WHERE task_id = %s RETURNING claim"
_CURSOR = "SELECT cursor, last_seq, attempts, due_at FROM tasks_app_pushconfig WHERE task_id = %s"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.mark.spec("4.3.3")
def test_a_worker_that_is_killed_in_the_middle_of_a_request(host: Host, receiver: Receiver) -> None:
    """The next one begins with the event that was not confirmed."""
    go = threading.Event()

    def hang_second(number: int) -> int:
        if number == 1:
            go.wait(PATIENCE)
        return 200

    receiver.answers["/killed"] = hang_second
    configuration = {"taskPushNotificationConfig": {"url": receiver.url("/killed")}}
    task = host.agent("steps").say("steps 3 0", configuration=configuration)["id"]
    wait_until(lambda: receiver.arrived("/killed") == 2, "the second request")
    killed = host.kill("worker")
    go.set()
    host.query(_OVERDUE, [task])  # Half a minute goes by.
    host.wait_for_another("worker", killed)
    host.wait_for_worker()
    bodies = [d.body for d in receiver.wait_for_state("/killed", "TASK_STATE_COMPLETED")]
    assert bodies[1] == bodies[2]
    assert len(set(bodies)) == len(bodies) - 1 == 5
    wait_until(lambda: host.query(_CURSOR, [task]) == [(5, 5, 0, None)], "the cursor at the end")


@pytest.mark.spec("4.3.3")
def test_a_broker_that_is_away(host: Host, receiver: Receiver) -> None:
    """Nobody can be rung for; the sweep finds what waits once it is back."""
    configuration = {"taskPushNotificationConfig": {"url": receiver.url("/quiet")}}
    host.broker.stop()
    try:
        task = host.agent("steps").say("steps 2 0", configuration=configuration)["id"]
        assert host.query(_CURSOR, [task]) == [(0, 0, 0, None)]
    finally:
        host.broker.start()
    receiver.wait_for_state("/quiet", "TASK_STATE_COMPLETED")
    wait_until(lambda: host.query(_CURSOR, [task]) == [(4, 4, 0, None)], "the cursor at the end")
    host.wait_for_worker()
