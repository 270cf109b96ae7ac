"""What webhooks receive: the events of their task, in order, with the caller's secrets, whatever else goes wrong."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from a2a_host.services.processes import Process
from tests.cases.reading import state
from tests.support.callers import Caller
from tests.support.deployment import PATIENCE, Deployment, wait_until
from tests.support.old_peers import OldJsonRpc, OldRest
from tests.support.peers import Peer
from tests.support.push_configs import PushConfigs
from tests.support.receiver import Receiver, Reply

_paths = itertools.count()
_NEXT = "SELECT cursor, last_seq, attempts, last_error FROM tasks_app_pushconfig WHERE task_id = %s"


@pytest.fixture
def path() -> str:
    """A path of the receiver that nobody else has."""
    return f"/hook-{next(_paths)}"


def inline(receiver: Receiver, path: str, **members: object) -> dict[str, object]:
    """A configuration that returns at once and names a webhook."""
    return {"taskPushNotificationConfig": {"url": receiver.url(path), **members}, "returnImmediately": True}


@pytest.mark.case("P01")
@pytest.mark.case("P05")
@pytest.mark.spec("4.3.3")
def test_a_webhook_that_came_with_the_message(
    alice: Caller, worker: Process, receiver: Receiver, binding: str, path: str
) -> None:
    steps = alice.at("steps", binding)
    task = steps.say("steps 2 10", configuration=inline(receiver, path, token="t"))
    assert PushConfigs(steps).list(task["id"])["configs"][0].items() >= {"taskId": task["id"]}.items()
    deliveries = receiver.wait_for_state(path, "TASK_STATE_COMPLETED")
    assert [next(iter(d.json)) for d in deliveries] == [
        *("statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate")
    ]
    for one in deliveries:
        (update,) = one.json.values()
        assert (update["taskId"], update["contextId"]) == (task["id"], task["contextId"])
    assert [d.state for d in deliveries if d.state] == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]


@pytest.mark.case("P03")
@pytest.mark.spec("4.3.3")
def test_the_headers_of_a_notification(
    alice: Caller, worker: Process, receiver: Receiver, binding: str, path: str
) -> None:
    ask = alice.at("ask", binding)
    task = ask.say()["id"]
    authentication = {"scheme": "Bearer", "credentials": "s3"}
    PushConfigs(ask).create(task, url=receiver.url(path), token="t", authentication=authentication)
    ask.say("on", taskId=task)
    deliveries = receiver.wait_for_state(path, "TASK_STATE_COMPLETED")
    for one in deliveries:
        assert one.headers["authorization"] == "Bearer s3"
        assert one.headers["content-type"] == "application/a2a+json"
        assert one.headers["x-a2a-notification-token"] == "t"


@pytest.mark.case("P01")
@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("peer", [OldJsonRpc, OldRest])
def test_a_webhook_of_version_0_3_is_told_in_its_words(
    alice: Caller, worker: Process, receiver: Receiver, peer: type[OldJsonRpc | OldRest], path: str
) -> None:
    authentication = {"schemes": ["Bearer"], "credentials": "s3"}
    config = {"url": receiver.url(path), "token": "t", "authentication": authentication}
    task = peer(alice, "steps").say("steps 2 0", {"pushNotificationConfig": config})
    wait_until(
        lambda: any(d.json["status"]["state"] == "completed" for d in receiver.deliveries(path)), "the completed task"
    )
    *_, last = deliveries = receiver.deliveries(path)
    assert {(d.json["kind"], d.json["id"], d.headers["content-type"]) for d in deliveries} == {
        ("task", task["id"], "application/json")
    }
    assert [d.headers["authorization"] + d.headers["x-a2a-notification-token"] for d in deliveries] == [
        "Bearer s3t"
    ] * len(deliveries)
    assert last.json["artifacts"] == task["artifacts"]


@pytest.mark.case("P23")
@pytest.mark.spec("13.2")
@pytest.mark.parametrize("peer", [OldJsonRpc, OldRest])
def test_version_0_3_is_no_way_around_the_check(alice: Caller, peer: type[OldJsonRpc | OldRest]) -> None:
    config = {"url": "http://169.254.169.254/"}
    with alice.refused("INVALID_PARAMS", "configuration.pushNotificationConfig.url"):
        peer(alice, "echo").say("hi", {"pushNotificationConfig": config})


@pytest.mark.case("P10")
@pytest.mark.spec("4.3.3")
def test_a_task_that_a_worker_runs_tells_the_same(
    alice: Caller, worker: Process, receiver: Receiver, path: str
) -> None:
    task = alice.at("worker-echo", "rest").say(configuration=inline(receiver, path))
    deliveries = receiver.wait_for_state(path, "TASK_STATE_COMPLETED")
    assert deliveries[-1].json["statusUpdate"]["taskId"] == task["id"]


@pytest.mark.case("P07")
@pytest.mark.spec("3.5.2")
def test_notifications_keep_the_order_of_events(alice: Caller, worker: Process, receiver: Receiver, path: str) -> None:
    """The first one is taken slowly; none overtakes it, none overlaps."""

    def slow_first(number: int) -> int:
        time.sleep(0.3 if number == 0 else 0)
        return 200

    receiver.answers[path] = slow_first
    steps = alice.at("steps", "jsonrpc")
    task = steps.say("steps 5 10", configuration=inline(receiver, path))
    deliveries = receiver.wait_for_state(path, "TASK_STATE_COMPLETED")
    assert all(before.ended <= after.started for before, after in itertools.pairwise(deliveries))
    texts = [d.json["artifactUpdate"]["artifact"]["parts"][0]["text"] for d in deliveries if "artifactUpdate" in d.json]
    parts = steps.get(task["id"])["artifacts"][0]["parts"]
    assert texts == [part["text"] for part in parts]
    assert len(texts) == 5


@pytest.mark.case("P09")
@pytest.mark.spec("4.3.3")
def test_a_receiver_that_hangs_holds_up_nobody(alice: Caller, worker: Process, receiver: Receiver, path: str) -> None:
    """It takes the connection and never answers."""
    go = threading.Event()

    def hang(number: int) -> int:
        go.wait(PATIENCE)
        return 200

    stuck = f"{path}-stuck"
    receiver.answers[stuck] = hang
    steps = alice.at("steps", "rest")
    try:
        configuration = {"taskPushNotificationConfig": {"url": receiver.url(stuck)}}
        assert state(steps.say("steps 2 10", configuration=configuration)) == "COMPLETED"
        steps.say("steps 2 10", configuration=inline(receiver, path))
        receiver.wait_for_state(path, "TASK_STATE_COMPLETED")
        assert receiver.deliveries(stuck) == []
    finally:
        go.set()
    receiver.wait_for_state(stuck, "TASK_STATE_COMPLETED")


@pytest.mark.spec("4.3.3")
def test_a_receiver_that_fails_twice_gets_everything(
    alice: Caller, worker: Process, receiver: Receiver, path: str
) -> None:
    receiver.answers[path] = lambda number: 503 if number < 2 else 204
    alice.at("steps", "jsonrpc").say("steps 2 10", configuration=inline(receiver, path))
    first, second, *others = receiver.wait_for_state(path, "TASK_STATE_COMPLETED")
    assert first.body == second.body == others[0].body
    assert len({d.body for d in others}) == len(others) == 4


@pytest.mark.case("P21")
@pytest.mark.spec("13.2")
def test_redirects_are_failures(
    alice: Caller, worker: Process, receiver: Receiver, deployment: Deployment, path: str
) -> None:
    elsewhere = f"{path}-elsewhere"
    receiver.answers[path] = lambda _: Reply(307, {"location": receiver.url(elsewhere)})
    authentication = {"scheme": "Bearer", "credentials": "s3"}
    task = alice.at("echo", "rest").say(configuration=inline(receiver, path, authentication=authentication))["id"]
    wait_until(lambda: deployment.query(_NEXT, [task])[0][2] > 0, "the failure to be noted")
    ((cursor, last_seq, _, error),) = deployment.query(_NEXT, [task])
    assert (cursor, error) == (0, "HTTP 307")
    assert last_seq > 0
    assert receiver.deliveries(elsewhere) == []


@pytest.mark.case("P11")
@pytest.mark.spec("3.1.10")
def test_nothing_is_posted_after_a_deletion(
    alice: Caller, worker: Process, receiver: Receiver, binding: str, path: str
) -> None:
    ask = alice.at("ask", binding)
    configs = PushConfigs(ask)
    task = ask.say()["id"]
    configs.create(task, id="gone", url=receiver.url(path))
    configs.create(task, id="kept", url=receiver.url(f"{path}-kept"))
    configs.delete(task, "gone")
    configs.delete(task, "gone")
    ask.say("on", taskId=task)
    receiver.wait_for_state(f"{path}-kept", "TASK_STATE_COMPLETED")
    assert receiver.deliveries(path) == []


@pytest.mark.case("P12")
@pytest.mark.spec("3.1.10")
def test_a_deletion_ends_what_was_to_be_tried_again(
    alice: Caller, worker: Process, receiver: Receiver, deployment: Deployment, path: str
) -> None:
    receiver.answers[path] = lambda _: 500
    ask = alice.at("ask", "rest")
    task = ask.say(configuration={"taskPushNotificationConfig": {"url": receiver.url(path), "id": "c"}})["id"]
    wait_until(lambda: deployment.query(_NEXT, [task])[0][2] > 0, "the failure to be noted")
    PushConfigs(ask).delete(task, "c")
    tried = len(receiver.deliveries(path))
    _let_sweeps_pass(alice, receiver, path)
    assert len(receiver.deliveries(path)) <= tried + 1  # one may have been under way


@pytest.mark.spec("4.3.3")
def test_several_webhooks_of_a_task_do_not_wait_for_each_other(
    alice: Caller, worker: Process, receiver: Receiver, deployment: Deployment, path: str
) -> None:
    receiver.answers[f"{path}-bad"] = lambda _: 500
    ask = alice.at("ask", "jsonrpc")
    task = ask.say()["id"]
    for name in ("bad", "good", "other"):
        PushConfigs(ask).create(task, id=name, url=receiver.url(f"{path}-{name}"))
    ask.say("on", taskId=task)
    for name in ("good", "other"):
        receiver.wait_for_state(f"{path}-{name}", "TASK_STATE_COMPLETED")
    assert {d.body for d in receiver.deliveries(f"{path}-bad")} <= {receiver.deliveries(f"{path}-good")[0].body}


def _let_sweeps_pass(alice: Caller, receiver: Receiver, path: str) -> None:
    """Wait until the worker has swept twice: a failing webhook is tried again by sweeps only."""
    other = f"{path}-clock"
    receiver.answers[other] = lambda number: 500 if number < 2 else 200
    peer: Peer = alice.at("echo", "jsonrpc")
    peer.say(configuration=inline(receiver, other))
    receiver.wait_for_state(other, "TASK_STATE_COMPLETED")
