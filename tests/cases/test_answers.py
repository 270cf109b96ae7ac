"""Area lifecycle: tasks that wait in a process, tasks below tasks, in every binding and over process borders."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cases.reading import at_work, state, terminal_events, texts
from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.old_peers import OLD_PEERS, old_message
from tests.support.refusals import Refused

WAITING = "SELECT waiting_attempt = attempt, worker FROM tasks_app_task WHERE id = %s"
CHILD = """SELECT c.id, a.slug FROM tasks_app_task c JOIN agents_agent a ON a.id = c.agent_id
    WHERE c.parent_id = %s"""


def in_process(deployment: Deployment, task_id: str) -> str:
    """The process whose run of the task waits, once it does."""
    rows = wait_until(lambda: [r for r in deployment.query(WAITING, [task_id]) if r[0]], "the run to wait")
    return str(rows[0][1])


def child_of(deployment: Deployment, task_id: str) -> tuple[str, str]:
    """(id, agent) of the only child, once it is there."""
    ((child, slug),) = wait_until(lambda: deployment.query(CHILD, [task_id]), "the child")
    return child, slug


@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize("slug", ["wait", "wait-worker"])
def test_an_answer_finds_the_run_that_waits(
    alice: Caller, deployment: Deployment, binding: str, slug: str, worker: object, second_web: Web
) -> None:
    """Asked in one binding and process, answered in another."""
    peer = alice.at(slug, binding)
    task = peer.say("wait")
    assert state(task) == "INPUT_REQUIRED"
    process = in_process(deployment, task["id"])
    assert process.startswith("worker-" if slug == "wait-worker" else "web-")
    other = alice.before(second_web).jsonrpc(slug)
    done = other.say("for two", taskId=task["id"])
    assert state(done) == "COMPLETED"
    assert done["artifacts"][0]["parts"] == [{"text": "for two"}]
    assert peer.get(task["id"])["history"] == done["history"]
    ((attempt, ran),) = deployment.query("SELECT attempt, worker FROM tasks_app_task WHERE id = %s", [task["id"]])
    assert (attempt, ran) == (2, process)
    assert terminal_events(deployment, task["id"]) == 1


@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("form", OLD_PEERS)
@pytest.mark.parametrize("slug", ["ask", "wait", "wait-worker"])
def test_an_answer_in_0_3(alice: Caller, deployment: Deployment, form: str, slug: str, worker: object) -> None:
    """Asked in 0.3, answered in 0.3 and, the next time, in 1.0: `ask` has returned, the others wait."""
    older, newer = OLD_PEERS[form](alice, slug), alice.jsonrpc(slug)
    for answer in (older.say, newer.say):
        task = older.say("wait")
        assert (task["kind"], task["status"]["state"]) == ("task", "input-required")
        assert task["status"]["message"]["role"] == "agent"
        process = in_process(deployment, task["id"]) if slug != "ask" else None
        done = answer("for two", taskId=task["id"], contextId=task["contextId"])
        assert done["id"] == task["id"]
        seen = older.get(task["id"])
        assert seen["status"]["state"] == "completed"
        assert seen["artifacts"][0]["parts"] == [{"kind": "text", "text": "for two"}]
        assert [said["role"] for said in seen["history"]] == ["user", "agent", "user"]
        assert seen["history"][-1]["parts"] == [{"kind": "text", "text": "for two"}]
        ((attempt, ran),) = deployment.query("SELECT attempt, worker FROM tasks_app_task WHERE id = %s", [task["id"]])
        assert attempt == 2
        assert process in (None, ran)
        assert terminal_events(deployment, task["id"]) == 1
    with alice.refused("UNSUPPORTED_OPERATION"):
        older.say("too late", taskId=task["id"])


@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("form", OLD_PEERS)
def test_an_answer_that_streams_in_0_3(alice: Caller, deployment: Deployment, form: str, worker: object) -> None:
    peer = OLD_PEERS[form](alice, "wait-worker")
    with peer.stream(old_message("wait")) as asking:
        asked = [event.response["event"] for event in asking.rest()]
    task = asked[0]["id"]
    assert (asked[-1]["status"]["state"], asked[-1]["final"]) == ("input-required", True)
    in_process(deployment, task)
    with peer.stream(old_message("for two", taskId=task)) as going_on:
        first, *events = [event.response["event"] for event in going_on.rest()]
    assert (first["kind"], first["id"], first["status"]["state"]) == ("task", task, "working")
    assert [event["artifact"]["parts"] for event in events if event["kind"] == "artifact-update"] == [
        [{"kind": "text", "text": "for two"}]
    ]
    assert (events[-1]["status"]["state"], events[-1]["final"]) == ("completed", True)
    assert {event["taskId"] for event in events} == {task}


@pytest.mark.spec("3.1.2")
def test_an_answer_that_streams(alice: Caller, deployment: Deployment, binding: str, worker: object) -> None:
    peer = alice.at("wait-worker", binding)
    task = peer.say("wait auth")
    assert state(task) == "AUTH_REQUIRED"
    in_process(deployment, task["id"])
    with peer.say_streaming("go on", taskId=task["id"]) as stream:
        events = stream.rest()
    assert [event.state for event in events if event.state][-1] == "COMPLETED"


@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("slug", ["wait", "wait-worker"])
def test_who_waits_is_cancelled_in_less_than_a_second(
    alice: Caller, deployment: Deployment, binding: str, slug: str, worker: object
) -> None:
    task = alice.jsonrpc(slug).say("wait")
    in_process(deployment, task["id"])
    started = time.monotonic()
    assert state(alice.at(slug, binding).cancel(task["id"])) == "CANCELED"
    assert time.monotonic() - started < 1


@pytest.mark.spec("3.1.5")
def test_a_cancel_from_every_other_process(alice: Caller, second_web: Web, worker: object, grpc_server: object) -> None:
    """The run is in the web process, in the gRPC process or in the worker; the cancel comes in elsewhere."""
    first, second, grpc = alice.jsonrpc, alice.before(second_web).jsonrpc, alice.grpc
    for start, cancel, slug in [
        *((first, second, "hold"), (first, grpc, "hold"), (grpc, first, "hold")),
        *((first, second, "hold-worker"), (second, grpc, "hold-worker")),
    ]:
        task = at_work(start(slug))
        started = time.monotonic()
        assert state(cancel(slug).cancel(task["id"])) == "CANCELED"
        assert time.monotonic() - started < 1


@pytest.mark.spec("3.1.5")
def test_cancel_pressed_at_once_in_two_bindings(
    alice: Caller, deployment: Deployment, worker: object, grpc_server: object
) -> None:
    for slug in ("hold", "hold-worker"):
        task = at_work(alice.jsonrpc(slug))

        def press(binding: str, slug: str = slug, task_id: str = task["id"]) -> str:
            try:
                return state(alice.at(slug, binding).cancel(task_id))
            except Refused as refusal:
                return refusal.reason

        with ThreadPoolExecutor(3) as pool:
            replies = list(pool.map(press, ["jsonrpc", "rest", "grpc"]))
        assert "CANCELED" in replies
        assert set(replies) <= {"CANCELED", "TASK_NOT_CANCELABLE"}
        assert terminal_events(deployment, task["id"]) == 1


@pytest.mark.spec("3.1.5")
@pytest.mark.parametrize("below", ["hold", "hold-worker"])
def test_a_cancel_reaches_what_was_delegated(
    alice: Caller, deployment: Deployment, binding: str, below: str, worker: object
) -> None:
    peer = alice.at("relay", binding)
    task = peer.start(f"relay relay {below}")
    middle, slug = child_of(deployment, task["id"])
    assert slug == "relay"
    leaf, slug = child_of(deployment, middle)
    assert slug == below
    leaves = alice.at(below, binding)
    wait_until(lambda: state(leaves.get(leaf)) == "WORKING", "the last child to be at work")
    started = time.monotonic()
    assert state(peer.cancel(task["id"])) == "CANCELED"
    wait_until(lambda: state(leaves.get(leaf)) == "CANCELED", "the last child to be cancelled")
    assert time.monotonic() - started < 2
    assert state(peer.get(middle)) == "CANCELED"
    for task_id in (task["id"], middle, leaf):
        assert terminal_events(deployment, task_id) == 1


@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("form", OLD_PEERS)
@pytest.mark.parametrize("below", ["hold", "hold-worker"])
def test_a_cancel_in_0_3_reaches_what_was_delegated(
    alice: Caller, deployment: Deployment, form: str, below: str, worker: object
) -> None:
    """Who follows the last child in 0.3 hears of it, and other clients see the same."""
    peer, leaves = OLD_PEERS[form](alice, "relay"), OLD_PEERS[form](alice, below)
    task = peer.start(f"relay relay {below}")
    middle, _ = child_of(deployment, task["id"])
    leaf, _ = child_of(deployment, middle)
    wait_until(lambda: leaves.get(leaf)["status"]["state"] == "working", "the last child to be at work")
    with leaves.resubscribe(leaf) as stream:
        stream.next()
        canceled = peer.cancel(task["id"])
        (last,) = [event.response["event"] for event in stream.rest()]
    assert (canceled["kind"], canceled["status"]["state"]) == ("task", "canceled")
    assert (last["taskId"], last["status"]["state"], last["final"]) == (leaf, "canceled", True)
    wait_until(lambda: peer.get(middle)["status"]["state"] == "canceled", "the child between them")
    assert state(alice.jsonrpc(below).get(leaf)) == "CANCELED"
    for task_id in (task["id"], middle, leaf):
        assert terminal_events(deployment, task_id) == 1
    with alice.refused("TASK_NOT_CANCELABLE"):
        leaves.cancel(leaf)


def test_a_worker_delegates_to_both_kinds_of_agents(alice: Caller, deployment: Deployment, worker: object) -> None:
    deployment.run(("agent", "register", "relay-worker", "--simulator", "relay", "--execution", "worker", "--open"))
    peer = alice.jsonrpc("relay-worker")
    wait_until(lambda: alice.client.get(f"{peer.base}{peer.path}/.well-known/agent-card.json").status_code == 200, "it")
    for below in ("echo", "worker-echo"):
        done = peer.say(f"relay {below} 你好")
        assert (state(done), done["artifacts"][0]["parts"]) == ("COMPLETED", [{"text": "你好"}])
        child, slug = child_of(deployment, done["id"])
        assert slug == below
        assert state(alice.jsonrpc(below).get(child)) == "COMPLETED"


def test_an_anonymous_callers_task_reaches_open_agents_only(anonymous: Caller, alice: Caller) -> None:
    failed = anonymous.jsonrpc("relay").say("relay order-agent hi")
    ((text,),) = texts([failed["status"]["message"]])
    assert text == (
        "Nothing was delegated to 'order-agent'. The caller of this task is anonymous, and the agent is not open."
    )
    assert state(alice.jsonrpc("relay").say("relay order-agent hi")) == "COMPLETED"
