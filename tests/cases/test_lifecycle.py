"""Area lifecycle: tasks and contexts, blocking and immediate sends, failure, cancelling (§3.1, §3.4)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cases.reading import TERMINAL, at_work, ended, state, texts
from tests.support.callers import Caller
from tests.support.deployment import wait_until
from tests.support.peers import message


@pytest.mark.case("T01")
@pytest.mark.case("T02")
@pytest.mark.spec("3.4.2")
@pytest.mark.parametrize("members", [{}, {"contextId": "c"}])
def test_an_unknown_task_is_not_made(alice: Caller, binding: str, members: dict[str, str]) -> None:
    """Also not inside a stream: the refusal is one document, no event."""
    echo = alice.at("echo", binding)
    for send in (echo.say, echo.start, echo.say_streaming):
        with alice.refused("TASK_NOT_FOUND") as refusal:
            send("hi", taskId="nope", **members)
        assert refusal.value.metadata == {"taskId": "nope"}
    assert echo.list()["totalSize"] == 0


@pytest.mark.case("T01")
@pytest.mark.spec("3.4.2")
def test_a_task_belongs_to_its_agent(alice: Caller, binding: str) -> None:
    task = alice.at("ask", binding).say("hi")
    for slug in ("auth", "order-agent", "ask-nobody"):
        other = alice.at(slug, binding)
        for call in (other.get, other.cancel, other.subscribe, lambda id, peer=other: peer.say("hi", taskId=id)):
            with alice.refused("AGENT_NOT_FOUND" if slug == "ask-nobody" else "TASK_NOT_FOUND"):
                call(task["id"])
    assert alice.at("ask", binding).get(task["id"]) == task


@pytest.mark.case("T03")
@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize("outcome", sorted(TERMINAL))
def test_an_ended_task_takes_no_message(alice: Caller, binding: str, outcome: str) -> None:
    peer, task = ended(alice, binding, outcome)
    before = peer.get(task["id"])
    for send in (peer.say, peer.start, peer.say_streaming):
        for members in ({}, {"contextId": task["contextId"]}):
            with alice.refused("UNSUPPORTED_OPERATION"):
                send("more", taskId=task["id"], **members)
    assert peer.get(task["id"]) == before


@pytest.mark.case("T05")
@pytest.mark.spec("3.4.3")
@pytest.mark.parametrize("slug", ["ask", "auth", "hold", "echo"])
def test_a_task_does_not_change_its_context(alice: Caller, binding: str, slug: str) -> None:
    peer = alice.at(slug, binding)
    task, other = [at_work(peer, **m) if slug == "hold" else peer.say(**m) for m in ({}, {"contextId": "other"})]
    for context in ("other", task["contextId"][:-1], task["contextId"].upper() + " ", task["id"]):
        for send in (peer.say, peer.start, peer.say_streaming):
            with alice.refused("INVALID_PARAMS", "message.contextId"):
                send("more", taskId=task["id"], contextId=context)
    if slug != "hold":
        assert peer.get(task["id"]) == task
    for made in (task, other):
        if slug == "hold":
            peer.cancel(made["id"])


@pytest.mark.case("T07")
@pytest.mark.spec("3.4.3")
@pytest.mark.parametrize("slug", ["ask", "auth"])
@pytest.mark.parametrize("given", [None, "my context"])
def test_a_follow_up_stays_in_its_context(alice: Caller, binding: str, slug: str, given: str | None) -> None:
    peer = alice.at(slug, binding)
    first = peer.say("one", **({"contextId": given} if given else {}))
    assert first["contextId"] == (given or first["contextId"])
    second = peer.say("two", taskId=first["id"])
    assert (second["id"], second["contextId"], state(second)) == (first["id"], first["contextId"], "COMPLETED")
    assert [(m["role"], m["taskId"], m["contextId"]) for m in second["history"]] == [
        ("ROLE_USER", first["id"], first["contextId"]),
        ("ROLE_AGENT", first["id"], first["contextId"]),
        ("ROLE_USER", first["id"], first["contextId"]),
    ]
    assert second["history"][1] == first["status"]["message"]


@pytest.mark.case("T07")
@pytest.mark.spec("3.4.3")
def test_a_follow_up_may_name_its_context_too(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    first = ask.say("one")
    second = ask.say("two", taskId=first["id"], contextId=first["contextId"])
    assert texts(second["artifacts"]) == [["two"]]


@pytest.mark.case("T09")
@pytest.mark.spec("3.4.1")
def test_tasks_of_one_context_share_nothing_else(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    first = echo.say("one")
    second = echo.say("two", contextId=first["contextId"])
    assert second["id"] != first["id"]
    assert second["contextId"] == first["contextId"]
    for task, text in ((first, "one"), (second, "two")):
        found = echo.get(task["id"])
        assert texts(found["artifacts"]) == [[text]]
        assert [m["parts"] for m in found["history"]] == [[{"text": text}]]
    assert first["artifacts"][0]["artifactId"] != second["artifacts"][0]["artifactId"]


@pytest.mark.case("T09")
@pytest.mark.spec("3.4.1")
def test_a_context_is_the_callers_own(alice: Caller, bob: Caller, binding: str) -> None:
    alice.at("echo", binding).say("hers", contextId="c")
    bob.at("echo", binding).say("his", contextId="c")
    for caller in (alice, bob):
        page = caller.at("echo", binding).list(contextId="c")
        assert (len(page["tasks"]), page["totalSize"]) == (1, 1)


@pytest.mark.case("T10")
@pytest.mark.spec("3.2.2")
@pytest.mark.parametrize(
    ("slug", "expected", "words"),
    [
        ("ask", "INPUT_REQUIRED", "What should I know before I go on?"),
        ("auth", "AUTH_REQUIRED", "Authorize me, then send a message to go on."),
        ("reject", "REJECTED", "I take no work."),
    ],
)
def test_a_blocking_send_returns_at_an_interruption(
    alice: Caller, binding: str, slug: str, expected: str, words: str
) -> None:
    for configuration in (None, {}, {"returnImmediately": False}):
        task = alice.at(slug, binding).say("hi", configuration=configuration)
        assert state(task) == expected
        assert task["status"]["message"]["role"] == "ROLE_AGENT"
        assert task["status"]["message"]["parts"] == [{"text": words}]
        assert alice.at(slug, binding).get(task["id"]) == task


@pytest.mark.case("T12")
@pytest.mark.spec("3.2.2")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_fifty_blocking_sends_at_once(alice: Caller, binding: str, slug: str, worker: object) -> None:
    peer = alice.at(slug, binding)
    with ThreadPoolExecutor(50) as pool:
        tasks = list(pool.map(lambda _: peer.say("steps 3 20"), range(50)))
    assert [state(task) for task in tasks] == ["COMPLETED"] * 50
    assert [texts(task["artifacts"]) for task in tasks] == [[["chunk 1\n", "chunk 2\n", "chunk 3\n"]]] * 50
    assert len({task["id"] for task in tasks}) == peer.list()["totalSize"] == 50


@pytest.mark.case("T13")
@pytest.mark.spec("3.2.2")
@pytest.mark.parametrize("slug", ["hold", "hold-worker", "silent"])
def test_an_immediate_send_does_not_wait(alice: Caller, binding: str, slug: str, worker: object) -> None:
    peer = alice.at(slug, binding)
    task = peer.start("hold")
    assert state(task) in ("SUBMITTED", "WORKING")
    assert "artifacts" not in task
    if slug != "silent":
        wait_until(lambda: state(peer.get(task["id"])) == "WORKING", "the task to be at work")
    assert state(peer.cancel(task["id"])) == "CANCELED"


@pytest.mark.case("T13")
@pytest.mark.spec("3.2.2")
def test_the_first_reply_is_a_snapshot(alice: Caller, binding: str) -> None:
    steps = alice.at("steps", binding)
    task = steps.start("steps 2 50")
    assert state(task) in ("SUBMITTED", "WORKING")
    assert "artifacts" not in task
    wait_until(lambda: state(steps.get(task["id"])) == "COMPLETED", "the end")
    done = steps.get(task["id"])
    assert texts(done["artifacts"]) == [["chunk 1\n", "chunk 2\n"]]


@pytest.mark.case("T13")
@pytest.mark.spec("3.2.2")
def test_an_immediate_follow_up_does_not_wait_either(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say("one")
    assert state(ask.start("two", taskId=task["id"])) in ("WORKING", "COMPLETED")
    wait_until(lambda: state(ask.get(task["id"])) == "COMPLETED", "the end")


@pytest.mark.case("T15")
@pytest.mark.spec("3.3.2")
@pytest.mark.parametrize(("text", "chunks"), [("boom", 0), ("boom 2", 2), ("boom after 3", 3)])
def test_an_exception_fails_the_task_and_tells_nothing(alice: Caller, binding: str, text: str, chunks: int) -> None:
    boom = alice.at("boom", binding)
    task = boom.say(text)
    assert state(task) == "FAILED"
    assert task["status"]["message"]["parts"] == [{"text": "The agent failed to process the message."}]
    expected = [[f"chunk {number}\n" for number in range(1, chunks + 1)]] if chunks else []
    assert texts(task.get("artifacts", [])) == expected
    assert boom.get(task["id"]) == task
    with boom.say_streaming(text) as stream:
        events = stream.rest()
    assert [event.state for event in events if event.state][-1] == "FAILED"
    for word in (b"Traceback", b"RuntimeError", b"boom, as asked", b".py", b"site-packages"):
        assert word not in stream.raw


@pytest.mark.case("T28")
@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize("configuration", [None, {"returnImmediately": True}, {"historyLength": 0}])
def test_an_answer_without_a_task(alice: Caller, binding: str, configuration: Any) -> None:
    direct = alice.at("direct", binding)
    for context in (None, "my context"):
        members = {"contextId": context} if context else {}
        params: dict[str, Any] = {"message": message("hi", **members)}
        if configuration:
            params["configuration"] = configuration
        (kind, answer), *more = direct.send(params).items()
        assert (kind, more) == ("message", [])
        assert set(answer) == {"messageId", "contextId", "role", "parts"}
        assert (answer["role"], answer["parts"]) == ("ROLE_AGENT", [{"text": "hi"}])
        assert answer["contextId"] == (context or answer["contextId"]) != ""
    assert direct.list()["totalSize"] == 0


@pytest.mark.case("T28")
@pytest.mark.spec("3.1.2")
def test_a_stream_of_one_message(alice: Caller, binding: str) -> None:
    with alice.at("direct", binding).say_streaming("hi", contextId="c") as stream:
        (event,) = stream.rest()
    answer = event.response["message"]
    assert (answer["role"], answer["parts"], answer["contextId"]) == ("ROLE_AGENT", [{"text": "hi"}], "c")
    assert "taskId" not in answer
