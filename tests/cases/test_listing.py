"""Area list: ListTasks (§3.1.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.callers import Caller
from tests.support.deployment import Deployment
from tests.support.peers import Peer

EMPTY = {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


def ids(page: dict[str, Any]) -> list[str]:
    return [task["id"] for task in page["tasks"]]


def walk(peer: Peer, **query: Any) -> list[str]:
    """Ids of all pages."""
    found: list[str] = []
    token = ""
    while True:
        page = peer.list(**query, pageToken=token)
        found += ids(page)
        token = page["nextPageToken"]
        if not token:
            return found


@pytest.mark.case("L01")
@pytest.mark.spec("3.1.4")
@pytest.mark.parametrize(
    "query",
    [{}, {"status": "TASK_STATE_WORKING"}, {"contextId": "none"}, {"includeArtifacts": True}, {"pageToken": ""}],
)
def test_an_empty_list_has_all_its_members(alice: Caller, binding: str, query: dict[str, Any]) -> None:
    assert alice.at("echo", binding).list(**query) == EMPTY


@pytest.mark.case("L01")
@pytest.mark.spec("3.1.4")
@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_page_size_is_that_of_the_request(alice: Caller, binding: str, size: int) -> None:
    assert alice.at("echo", binding).list(pageSize=size) == EMPTY | {"pageSize": size}


@pytest.mark.case("L03")
@pytest.mark.spec("6.5")
@pytest.mark.parametrize("size", ["0", "101", "-1", "2147483648", "1.5", '"abc"', '"0"', '""', "true", "[]", "1e9"])
def test_other_page_sizes_are_refused(alice: Caller, size: str) -> None:
    with alice.refused("INVALID_PARAMS", "pageSize"):
        alice.jsonrpc("echo").call("ListTasks", f'{{"pageSize":{size}}}')


@pytest.mark.case("L04")
@pytest.mark.spec("11.5")
@pytest.mark.parametrize(
    "size", ["-1", "abc", "2147483648", "1.5", "0", "101", "", " 5", "+5", "5 ", "0x5", "1e1", "٥", "5,5"]
)
def test_other_page_sizes_in_a_query_are_refused(alice: Caller, size: str) -> None:
    with alice.refused("INVALID_PARAMS", "pageSize"):
        alice.rest("echo").list(pageSize=size)


@pytest.mark.case("L04")
@pytest.mark.spec("11.5")
def test_a_page_size_given_twice_is_refused(alice: Caller) -> None:
    for query in ("pageSize=5&pageSize=5", "pageSize=5&page_size=5"):
        with alice.refused("INVALID_PARAMS", "pageSize"):
            alice.rest("echo").call("GET", f"/tasks?{query}")


@pytest.mark.case("L05")
@pytest.mark.spec("3.1.4")
@pytest.mark.parametrize(
    "token",
    ["garbage", "%%%", "a:b:c", ":", "..", "eyJhIjoxfQ", "W10:1tX:abc", "你好", "x" * 5000, "null", "\n", "W10:\x01:W"],
)
def test_a_token_that_is_not_ours_is_refused(alice: Caller, binding: str, token: str) -> None:
    with alice.refused("INVALID_PARAMS", "pageToken"):
        alice.at("echo", binding).list(pageToken=token)


@pytest.mark.case("L05")
@pytest.mark.spec("3.1.4")
def test_a_token_is_good_for_its_own_query_only(alice: Caller, bob: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    for _ in range(3):
        echo.say("hi", contextId="c")
    bob.at("echo", binding).say("hi", contextId="c")
    token = echo.list(pageSize=1)["nextPageToken"]
    assert len(ids(echo.list(pageSize=1, pageToken=token))) == 1
    assert len(ids(echo.list(pageSize=2, pageToken=token, includeArtifacts=True, historyLength=1))) == 2
    for peer, query in [
        (echo, {"contextId": "c"}),
        (echo, {"status": "TASK_STATE_COMPLETED"}),
        (echo, {"statusTimestampAfter": "2020-01-01T00:00:00Z"}),
        (alice.at("data", binding), {}),
        (bob.at("echo", binding), {}),
    ]:
        with alice.refused("INVALID_PARAMS", "pageToken"), bob.nothing_stored():
            peer.list(pageToken=token, **query)
    for forged in (token[:-1], token[1:], token + "A", token[:-1] + ("A" if token[-1] != "A" else "B"), token.upper()):
        with alice.refused("INVALID_PARAMS", "pageToken"):
            echo.list(pageToken=forged)


@pytest.mark.case("L07")
@pytest.mark.case("L08")
@pytest.mark.spec("3.1.4")
def test_artifacts_are_listed_when_they_are_asked_for(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    task = echo.say("hi")
    bare = {name: task[name] for name in ("id", "contextId", "status")}
    unasked: list[dict[str, Any]] = [{}, {"includeArtifacts": False}, {"historyLength": 0}]
    for query in unasked:
        assert echo.list(**query)["tasks"] == [bare]
    assert echo.list(includeArtifacts=True)["tasks"] == [bare | {"artifacts": task["artifacts"]}]
    assert echo.list(historyLength=1)["tasks"] == [bare | {"history": task["history"]}]
    assert echo.list(historyLength=1, includeArtifacts=True)["tasks"] == [task]


@pytest.mark.case("L08")
@pytest.mark.spec("3.1.4")
def test_a_task_without_artifacts_has_no_null(alice: Caller, binding: str) -> None:
    reject = alice.at("reject", binding)
    task = reject.say("hi")
    (listed,) = reject.list(includeArtifacts=True)["tasks"]
    assert set(listed) == {"id", "contextId", "status"}
    assert "artifacts" not in task


@pytest.mark.case("L09")
@pytest.mark.spec("6.5")
def test_the_status_filter(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    done, waiting, cancelled = ask.say("a"), ask.say("b"), ask.say("c")
    ask.say("answer", taskId=done["id"])
    ask.cancel(cancelled["id"])
    for state, expected in [
        ("TASK_STATE_COMPLETED", [done["id"]]),
        ("TASK_STATE_INPUT_REQUIRED", [waiting["id"]]),
        ("TASK_STATE_CANCELED", [cancelled["id"]]),
        ("TASK_STATE_FAILED", []),
        ("TASK_STATE_AUTH_REQUIRED", []),
        ("TASK_STATE_UNSPECIFIED", [cancelled["id"], done["id"], waiting["id"]]),
        (6, [waiting["id"]]),
        (0, [cancelled["id"], done["id"], waiting["id"]]),
    ]:
        page = ask.list(status=state)
        assert (ids(page), page["totalSize"]) == (expected, len(expected))


@pytest.mark.case("L09")
@pytest.mark.spec("6.5")
@pytest.mark.parametrize(
    "status", ["completed", "COMPLETED", "task_state_completed", "TASK_STATE_CANCELLED", "9", "-1", " ", "TASK_STATE_"]
)
def test_an_unknown_status_is_refused(alice: Caller, json_binding: str, status: str) -> None:
    echo = alice.at("echo", json_binding)
    echo.say("hi")
    with alice.refused("INVALID_PARAMS", "status"):
        echo.list(status=status)


@pytest.mark.case("L11")
@pytest.mark.spec("3.1.4")
def test_a_walk_has_no_gap_and_no_repetition_while_tasks_come_and_change(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    t1, t2, t3 = (ask.say(text)["id"] for text in ("1", "2", "3"))
    ask.say("answer", taskId=t1)
    assert ids(ask.list()) == [t1, t3, t2]
    first = ask.list(pageSize=1)
    t4 = ask.say("4")["id"]
    second = ask.list(pageSize=1, pageToken=first["nextPageToken"])
    third = ask.list(pageSize=1, pageToken=second["nextPageToken"])
    assert [ids(page) for page in (first, second, third)] == [[t1], [t3], [t2]]
    assert [page["totalSize"] for page in (first, second, third)] == [3, 4, 4]
    assert third["nextPageToken"] == ""
    assert ids(ask.list()) == [t4, t1, t3, t2]


@pytest.mark.case("L11")
@pytest.mark.spec("3.1.4")
def test_tasks_of_one_moment_are_walked_once_each(alice: Caller, deployment: Deployment, binding: str) -> None:
    echo = alice.at("echo", binding)
    made = [echo.say(str(number))["id"] for number in range(7)]
    deployment.query("UPDATE tasks_app_task SET status_at = '2025-01-01T00:00:00.5Z' WHERE owner = %s", [alice.owner])
    for size in (1, 2, 3, 7, 100):
        assert walk(echo, pageSize=size) == sorted(made, reverse=True)
    assert echo.list(pageSize=7)["nextPageToken"] == ""


@pytest.mark.case("L11")
@pytest.mark.spec("3.1.4")
def test_filters_work_together_and_over_pages(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    in_c = [ask.say(str(number), contextId="c")["id"] for number in range(4)]
    ask.say("elsewhere", contextId="d")
    ask.say("answer", taskId=in_c[0])
    query = {"contextId": "c", "status": "TASK_STATE_INPUT_REQUIRED"}
    assert walk(ask, pageSize=2, **query) == in_c[:0:-1]
    assert ask.list(pageSize=2, **query)["totalSize"] == 3
    assert ask.list(contextId="c")["totalSize"] == 4


@pytest.mark.case("L11")
@pytest.mark.spec("3.1.4")
def test_status_timestamp_after_includes_the_very_moment_that_was_printed(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    task = echo.say("hi")
    stamp: str = task["status"]["timestamp"]
    whole, millis = stamp[:-5], int(stamp[-4:-1])
    for after, expected in [
        (stamp, 1),
        (stamp.replace("Z", "+00:00"), 1),
        (f"{whole}.{millis:03}000Z", 1),
        (f"{whole}.{millis:03}001Z", 0),
        (f"{whole}Z", 1),
        ("1970-01-01T00:00:00Z", 1),
        ("2999-01-01T00:00:00+14:00", 0),
    ]:
        page = echo.list(statusTimestampAfter=after)
        assert (len(page["tasks"]), page["totalSize"]) == (expected, expected), after


@pytest.mark.spec("5.6.1")
@pytest.mark.parametrize(
    "after",
    ["yesterday", "2025-01-01", "2025-01-01T00:00:00", "2025-13-01T00:00:00Z", "1", "2025-01-01T00:00:00.1234567890Z"],
)
def test_other_timestamps_are_refused(alice: Caller, json_binding: str, after: str) -> None:
    with alice.refused("INVALID_PARAMS", "statusTimestampAfter"):
        alice.at("echo", json_binding).list(statusTimestampAfter=after)


@pytest.mark.spec("3.1.4")
def test_the_total_is_exact_over_all_changes(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    made = [ask.say("hi")["id"] for _ in range(3)]
    assert [ask.list()["totalSize"], ask.list(status="TASK_STATE_INPUT_REQUIRED")["totalSize"]] == [3, 3]
    ask.say("answer", taskId=made[0])
    assert [ask.list()["totalSize"], ask.list(status="TASK_STATE_INPUT_REQUIRED")["totalSize"]] == [3, 2]
    ask.cancel(made[1])
    assert [ask.list()["totalSize"], ask.list(status="TASK_STATE_INPUT_REQUIRED")["totalSize"]] == [3, 1]


@pytest.mark.spec("3.1.4")
def test_an_exchange_that_was_answered_with_a_message_is_no_task(alice: Caller, binding: str) -> None:
    direct = alice.at("direct", binding)
    direct.send({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}})
    assert direct.list() == EMPTY
