"""Tasks that ask, and tasks below tasks, over WebSocket: what follows comes over the same connection or another one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.callers import Caller
from tests.support.deployment import Deployment
from tests.support.refusals import Refused
from tests.websocket.conftest import eventually
from tests.websocket.line import open_line, saying, state

pytestmark = [pytest.mark.spec("12"), pytest.mark.timeout(60)]
CHILD = "SELECT id FROM tasks_app_task WHERE parent_id = %s"
WAITING = "SELECT 1 FROM tasks_app_task WHERE id = %s AND waiting_attempt = attempt"


def answering(text: str, task: dict[str, Any]) -> dict[str, Any]:
    """Parameters of SendMessage that continue a task."""
    params = saying(text)
    params["message"] |= {"taskId": task["id"], "contextId": task["contextId"]}
    return params


async def wait_for_run(deployment: Deployment, task: dict[str, Any]) -> None:
    """Return when the run of a task waits in its process."""
    await eventually(lambda: deployment.query(WAITING, [task["id"]]), "the run to wait")


@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize("slug", ["ask", "wait"])
async def test_an_answer_on_the_same_connection(alice: Caller, deployment: Deployment, slug: str) -> None:
    """`ask` has returned, `wait` waits in its process."""
    async with open_line(alice, slug) as line:
        task = (await line.call(1, "SendMessage", saying("wait")))["task"]
        assert state(task) == "INPUT_REQUIRED"
        if slug == "wait":
            await wait_for_run(deployment, task)
        done = (await line.call(2, "SendMessage", answering("for two", task)))["task"]
        assert (done["id"], state(done)) == (task["id"], "COMPLETED")
        assert done["artifacts"][0]["parts"] == [{"text": "for two"}]
        assert [said["role"] for said in done["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]
        assert alice.rest(slug).get(task["id"]) == done
        with pytest.raises(Refused) as late:
            await line.call(3, "SendMessage", answering("too late", task))
        assert late.value.reason == "UNSUPPORTED_OPERATION"
        await line.nothing_more()


@pytest.mark.spec("3.1.2")
@pytest.mark.parametrize("slug", ["ask", "wait"])
async def test_a_stream_that_ends_with_a_question_and_one_that_answers(
    alice: Caller, deployment: Deployment, slug: str
) -> None:
    """The second stream is on a connection of its own; who follows the task on the first one sees all of it."""
    async with open_line(alice, slug) as first, open_line(alice, slug) as second:
        await first.ask("q", "SendStreamingMessage", saying("wait"))
        asked = await first.rest("q")
        task = asked[0]["task"]
        assert state(asked[-1]) == "INPUT_REQUIRED"
        if slug == "wait":
            await wait_for_run(deployment, task)
        await first.ask("f", "SubscribeToTask", {"id": task["id"]})
        assert state(await first.result("f")) == "INPUT_REQUIRED"
        await second.ask("a", "SendStreamingMessage", answering("for two", task))
        answered, followed = await second.rest("a"), await first.rest("f")
    assert state(answered[0]) == "WORKING"
    assert [state(item) for item in followed if "statusUpdate" in item] == ["WORKING", "COMPLETED"]
    assert answered[1:] == followed[1:]
    (chunk,) = [item["artifactUpdate"]["artifact"]["parts"] for item in followed if "artifactUpdate" in item]
    assert chunk == [{"text": "for two"}]


@pytest.mark.spec("3.1.5")
async def test_a_cancel_reaches_what_was_delegated(alice: Caller, deployment: Deployment) -> None:
    """Who follows the last child on a connection to its agent hears of it."""

    async def child_of(parent: str) -> str:
        await eventually(lambda: deployment.query(CHILD, [parent]), "the child")
        ((child,),) = deployment.query(CHILD, [parent])
        return str(child)

    async with open_line(alice, "relay") as line, open_line(alice, "hold") as leaves:
        immediately = {"configuration": {"returnImmediately": True}}
        task = (await line.call(1, "SendMessage", saying("relay relay hold") | immediately))["task"]["id"]
        middle = await child_of(task)
        leaf = await child_of(middle)
        await eventually(lambda: state(alice.rest("hold").get(leaf)) == "WORKING", "the last child to be at work")
        await line.ask("middle", "SubscribeToTask", {"id": middle})
        await leaves.ask("leaf", "SubscribeToTask", {"id": leaf})
        assert state(await line.result("middle")) == "WORKING"
        assert state(await leaves.result("leaf")) == "WORKING"
        assert state(await line.call(2, "CancelTask", {"id": task})) == "CANCELED"
        assert [state(item) for item in await line.rest("middle")] == ["CANCELED"]
        assert [state(item) for item in await leaves.rest("leaf")] == ["CANCELED"]
        with pytest.raises(Refused) as ended:
            await leaves.call(3, "CancelTask", {"id": leaf})
        assert ended.value.reason == "TASK_NOT_CANCELABLE"
    assert {state(alice.jsonrpc(slug).get(id)) for slug, id in [("relay", middle), ("hold", leaf)]} == {"CANCELED"}
