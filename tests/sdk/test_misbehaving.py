"""What an executor may not send fails its task: callers never see it, and nothing of it is stored."""

from __future__ import annotations

import pytest

from tests.sdk.caller import SdkCaller, state, states, texts
from tests.sdk.conftest import register
from tests.support.deployment import Deployment, Web


@pytest.fixture(scope="module")
def misbehaving(deployment: Deployment, web: Web) -> str:
    """The agent's slug."""
    register(deployment, ("agent", "register", "misbehaving", "--executor", "misbehaving.Misbehaving"))
    return "misbehaving"


@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize(
    "event",
    ["another task", "another context", "a second task", "an empty artifact", "a message after all", "no state"],
)
async def test_an_event_that_is_not_allowed(alice: SdkCaller, misbehaving: str, event: str) -> None:
    task = await alice.say(misbehaving, event)
    assert (state(task), texts(task)) == ("FAILED", [])
    assert task.status.message.parts[0].text == "The agent failed to process the message."
    assert [m.parts[0].text for m in task.history] == [event]
    responses = [response async for response in alice.stream(misbehaving, event)]
    assert states(responses)[-2:] == ["WORKING", "FAILED"]


async def test_an_executor_that_forgets_to_end(alice: SdkCaller, misbehaving: str) -> None:
    task = await alice.say(misbehaving, "no end")
    assert state(task) == "FAILED"
    assert task.status.message.parts[0].text == "The agent ended without a result."
