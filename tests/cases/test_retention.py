"""The worker deletes what is kept no longer and erases what was asked for; callers find it gone."""

from __future__ import annotations

import pytest

from a2a_host.services.processes import Process
from tests.support.callers import Caller
from tests.support.deployment import Deployment, wait_until

AGE = "UPDATE tasks_app_task SET status_at = status_at - interval '2 days' WHERE id = ANY(%s)"
COUNT = "SELECT coalesce(sum(tasks), 0)::int FROM tasks_app_taskcount WHERE owner = %s"
ASK = """INSERT INTO tasks_app_erasure (requested_by, requested_at, owner, agent, context_id, reference)
    VALUES ('staff', now(), %s, '', '', 'principal 0') RETURNING id"""
FINISHED = "SELECT tasks FROM tasks_app_erasure WHERE id = %s AND finished_at IS NOT NULL"


@pytest.mark.spec("3.1.3")
def test_a_task_goes_when_its_time_is_over(alice: Caller, deployment: Deployment, worker: Process) -> None:
    agent = alice.jsonrpc("brief")
    old, young = agent.say("old")["id"], agent.say("young")["id"]
    deployment.query(AGE, [[old]])
    wait_until(lambda: deployment.query(COUNT, [alice.owner]) == [(1,)], "the end of the old task")
    with alice.refused_while_running("TASK_NOT_FOUND"):
        agent.get(old)
    listed = agent.list()
    assert ([task["id"] for task in listed["tasks"]], listed["totalSize"]) == ([young], 1)


@pytest.mark.spec("13.4")
def test_a_person_is_erased_with_running_work(
    alice: Caller, bob: Caller, deployment: Deployment, worker: Process
) -> None:
    kept = bob.jsonrpc("echo").say("mine")["id"]
    done, running = alice.rest("echo").say("done")["id"], alice.jsonrpc("hold").start("hold 600")["id"]
    with alice.jsonrpc("hold").subscribe(running) as stream:
        stream.next()
        ((erasure,),) = deployment.query(ASK, [alice.owner])
        assert stream.rest()[-1].state == "CANCELED"
    wait_until(lambda: deployment.query(FINISHED, [erasure]) == [(2,)], "the end of the erasure")
    for slug, task in (("echo", done), ("hold", running)):
        with alice.refused_while_running("TASK_NOT_FOUND"):
            alice.jsonrpc(slug).get(task)
    assert alice.stored() == ([], (0, 0, 0, 0))
    assert bob.jsonrpc("echo").get(kept)["status"]["state"] == "TASK_STATE_COMPLETED"
