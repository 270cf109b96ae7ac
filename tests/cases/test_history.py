"""Area history: historyLength (§3.2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.callers import Caller
from tests.support.peers import Peer


def conversation(caller: Caller, binding: str) -> tuple[Peer, str, list[str]]:
    """A task with five messages: peer, task id, texts."""
    auth = caller.at("chatty", binding)
    task = auth.say("one")
    for text in ("three", "five"):
        auth.say(text, taskId=task["id"])
    history = auth.get(task["id"])["history"]
    return auth, task["id"], [message["parts"][0]["text"] for message in history]


@pytest.mark.case("H01")
@pytest.mark.case("H04")
@pytest.mark.spec("3.2.4")
def test_history_length_counts_from_the_end(alice: Caller, binding: str) -> None:
    peer, task, texts = conversation(alice, binding)
    assert texts == ["one", "Say more.", "three", "Say more.", "five"]
    for length, expected in [(0, None), (1, texts[-1:]), (2, texts[-2:]), (5, texts), (6, texts), (2147483647, texts)]:
        for found in (
            peer.get(task, historyLength=length),
            peer.get(task, historyLength=str(length)),
            *peer.list(historyLength=length)["tasks"],
        ):
            assert [m["parts"][0]["text"] for m in found["history"]] == expected if length else "history" not in found
    assert [m["parts"][0]["text"] for m in peer.get(task)["history"]] == texts
    assert "history" not in peer.list()["tasks"][0]


@pytest.mark.case("H01")
@pytest.mark.spec("3.2.4")
@pytest.mark.parametrize(("length", "expected"), [(0, None), (1, ["hi"]), (2147483647, ["hi"]), (None, ["hi"])])
def test_history_length_of_a_send(alice: Caller, binding: str, length: int | None, expected: list[str] | None) -> None:
    configuration = {} if length is None else {"historyLength": length}
    ask = alice.at("ask", binding)
    for task in (
        ask.say("hi", configuration=configuration),
        ask.say("hi", configuration=configuration | {"returnImmediately": True}),
    ):
        found = [m["parts"][0]["text"] for m in task["history"]] if "history" in task else None
        assert found == expected
    with ask.say_streaming("hi", configuration=configuration) as stream:
        first = stream.next().response["task"]
        stream.rest()
    assert ("history" in first) == (expected is not None)


@pytest.mark.case("H03")
@pytest.mark.case("H04")
@pytest.mark.spec("3.2.4")
@pytest.mark.parametrize("length", [-1, 2147483648, "abc", "1.5", "", "-0.5", "1e2"])
def test_other_history_lengths_are_refused(alice: Caller, json_binding: str, length: Any) -> None:
    echo = alice.at("echo", json_binding)
    task = echo.say("hi")
    with alice.refused("INVALID_PARAMS", "historyLength"):
        echo.get(task["id"], historyLength=length)
    with alice.refused("INVALID_PARAMS", "historyLength"):
        echo.list(historyLength=length)
    for send in (echo.say, echo.say_streaming):
        with alice.refused("INVALID_PARAMS", "configuration.historyLength"):
            send("hi", configuration={"historyLength": length})
