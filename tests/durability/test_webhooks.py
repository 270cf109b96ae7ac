"""Webhooks while parts of the host are killed or away: every event arrives, in order, at least once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet

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
    """Nobody can be rung for, and the worker finds what waits all the same."""
    configuration = {"taskPushNotificationConfig": {"url": receiver.url("/quiet")}}
    host.broker.stop()
    try:
        task = host.agent("steps").say("steps 2 0", configuration=configuration)["id"]
        receiver.wait_for_state("/quiet", "TASK_STATE_COMPLETED")
    finally:
        host.broker.start()
    wait_until(lambda: host.query(_CURSOR, [task]) == [(4, 4, 0, None)], "the cursor at the end")
    host.wait_for_worker()


@pytest.mark.spec("4.3.3")
def test_everything_dies_between_the_commit_and_the_delivery(host: Host, receiver: Receiver) -> None:
    """What is stored is delivered, in order: there is no other outbox than the log."""
    receiver.answers["/all-dead"] = lambda number: 503 if number == 0 else 200
    configuration = {"taskPushNotificationConfig": {"url": receiver.url("/all-dead")}}
    host.broker.stop()
    try:
        worker = host.kill("worker")
        task = host.agent("steps").say("steps 3 0", configuration=configuration)["id"]
        web, postgres = host.kill("web"), host.kill("postgres")
        for name, pid in (("postgres", postgres), ("web", web), ("worker", worker)):
            host.wait_for_another(name, pid)
    finally:
        host.broker.start()
    host.wait_healthy()
    host.wait_for_worker()
    wait_until(lambda: host.query(_CURSOR, [task]) == [(5, 5, 0, None)], "the cursor at the end")
    ids = [d.headers["webhook-id"] for d in receiver.deliveries("/all-dead")]
    assert list(dict.fromkeys(ids)) == [f"{task}-{seq}" for seq in range(1, 6)]
    assert ids == sorted(ids)
    ledger = "SELECT seq, status FROM tasks_app_delivery WHERE task_id = %s AND error = '' ORDER BY id"
    assert host.query(ledger, [task]) == [(seq, 200) for seq in range(1, 6)]


@pytest.mark.spec("13.2")
def test_the_encryption_key_is_changed_under_a_running_host(host: Host, receiver: Receiver) -> None:
    """What was stored before and after is delivered, and nothing is restarted."""
    path = host.copy.data_dir / "encryption.key"
    (old,) = path.read_text().split()
    before = host.copy.pids()
    receiver.answers["/rotated"] = lambda number: 503 if number == 0 else 200

    def told(credentials: str) -> str:
        authentication = {"scheme": "Bearer", "credentials": credentials}
        config = {"url": receiver.url("/rotated"), "authentication": authentication}
        task = host.agent("echo").say(configuration={"taskPushNotificationConfig": config})["id"]
        wait_until(lambda: host.query(_CURSOR, [task])[0][0] == host.query(_CURSOR, [task])[0][1] > 0, "its events")
        return str(task)

    told("first")
    host.copy.manage("encryptionkey", "new")
    new, kept = path.read_text().split()
    assert kept == old
    told("second")
    os.utime(path, (path.stat().st_mtime - 61,) * 2)  # A minute goes by.
    host.copy.manage("encryptionkey", "retire")
    assert path.read_text().split() == [new]
    told("third")
    sent = dict.fromkeys(d.headers["authorization"] for d in receiver.deliveries("/rotated"))
    assert list(sent) == ["Bearer first", "Bearer second", "Bearer third"]
    stored = host.query("SELECT credentials FROM tasks_app_pushconfig WHERE credentials <> ''")
    assert {Fernet(new).decrypt(row[0]) for row in stored} >= {b"first", b"second", b"third"}
    assert host.copy.pids() == before
    assert host.query("SELECT error FROM tasks_app_delivery WHERE error LIKE %s", ["%decrypt%"]) == []
