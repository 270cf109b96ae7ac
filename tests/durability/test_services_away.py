"""The broker and PostgreSQL go away and come back: nothing that was acknowledged is lost, and service goes on."""

from __future__ import annotations

import signal

import pytest

from protocol.states import TaskState
from tests.cases.reading import CHUNKS, assemble, at_work, state, states, texts
from tests.durability.host import BOUND, Host
from tests.durability.load import Load


def test_the_broker_is_away_while_callers_send(host: Host) -> None:
    """Sends are taken as fast as ever, and the worker finds their tasks by itself; so it does when the broker is back,
    which had forgotten everything."""
    steps = host.agent("steps-worker")
    running = at_work(steps, "steps 20 100")["id"]
    host.broker.stop()
    tasks = [steps.start(f"steps {number} 0") for number in range(1, 6)]
    assert [state(task) for task in tasks] == ["SUBMITTED"] * 5
    cancelled = steps.cancel(tasks.pop()["id"])
    assert state(cancelled) == "CANCELED"
    assert state(host.agent("echo").say()) == "COMPLETED"
    ids = [task["id"] for task in tasks]
    host.wait_for_ends([running, *ids], 2 * BOUND)
    host.broker.start()
    assert texts(steps.get(running)["artifacts"]) == [CHUNKS[:20]]
    for number, task_id in enumerate(ids, start=1):
        task = steps.get(task_id)
        assert (state(task), texts(task["artifacts"])) == ("COMPLETED", [CHUNKS[:number]])
    host.check_books([running, cancelled["id"], *ids])
    assert steps.get(cancelled["id"]) == cancelled
    host.wait_for_worker()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["restarted", "killed"])
def test_postgres_goes_away_under_load(host: Host, number: signal.Signals) -> None:
    """The processes that run the tasks live on, so every task that was acknowledged completes, and streams go on."""
    with (
        Load(host) as load,
        host.agent("steps").say_streaming("steps 30 200") as stream,
        host.agent("steps-worker").say_streaming("steps 30 200") as elsewhere,
    ):
        seen, told = stream.until("WORKING"), elsewhere.until("WORKING")
        load.wait_for_more(100)
        killed = host.kill("postgres", number)
        host.wait_for_another("postgres", killed)
        load.wait_for_more(100)
        seen += stream.rest()
        told += elsewhere.rest()
    ids = [seen[0].response["task"]["id"], *load.acknowledged]
    assert len(set(ids)) == len(ids) > 200
    ends = host.wait_for_ends(ids, BOUND)
    host.check_books(ids)
    assert {task_id: end for task_id, end in ends.items() if end is not TaskState.COMPLETED} == {}
    for events in (seen, told):
        assert states(events)[-1] == "COMPLETED"
        assert assemble(events) == CHUNKS
        assert [event.id for event in events] == list(range(events[0].id, events[0].id + len(events)))
    assert texts(host.agent("steps").get(ids[0])["artifacts"]) == [CHUNKS]
    assert load.unanswered == []
    host.wait_for_worker()
