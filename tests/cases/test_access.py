"""Area auth: who is calling, and whose tasks are whose (§7.4, §13.1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.reading import at_work
from tests.support.callers import Caller
from tests.support.deployment import Deployment, wait_until
from tests.support.peers import Peer, message
from tests.support.refusals import Refused

CHALLENGE = 'Bearer realm="a2a-host"'
INVALID = 'Bearer realm="a2a-host", error="invalid_token"'


def refusal(peer: Peer, operation: str, id: str) -> tuple[Any, ...]:
    """How a call is refused, without the id that was asked for."""
    sends = operation in ("say", "say_streaming", "start")
    with pytest.raises(Refused) as caught:
        getattr(peer, operation)(*(["x"] if sends else [id]), **({"taskId": id} if sends else {}))
    refused = caught.value
    assert refused.metadata == {"taskId": id}
    return refused.code, refused.status, refused.message, refused.reason, refused.fields


@pytest.mark.case("U01")
@pytest.mark.case("U03")
@pytest.mark.spec("13.1")
@pytest.mark.parametrize("slug", ["ask", "auth", "hold", "echo"])
def test_a_task_of_somebody_else_looks_absent(
    alice: Caller, bob: Caller, anonymous: Caller, binding: str, slug: str
) -> None:
    hers = alice.at(slug, binding)
    task = at_work(hers) if slug == "hold" else hers.say()
    for stranger in (bob, anonymous):
        peer = stranger.at(slug, binding)
        with alice.nothing_stored(), bob.nothing_stored():
            for operation in ("get", "cancel", "subscribe", "say", "start", "say_streaming"):
                absent = refusal(peer, operation, "0199c8f0-0000-7000-8000-000000000001")
                assert refusal(peer, operation, task["id"]) == absent
    assert hers.get(task["id"])["status"] == task["status"]
    if slug == "hold":
        hers.cancel(task["id"])


@pytest.mark.case("U01")
@pytest.mark.spec("13.1")
def test_a_task_of_nobody_in_particular_is_not_a_key_holders(alice: Caller, anonymous: Caller, binding: str) -> None:
    """And on an agent without a common history, whoever knows the id may read it, but there is no list."""
    task = anonymous.at("private", binding).say()
    assert anonymous.at("private", binding).get(task["id"]) == task
    assert anonymous.at("private", binding).list()["totalSize"] == 0
    with alice.refused("TASK_NOT_FOUND"):
        alice.at("private", binding).get(task["id"])


@pytest.mark.case("U01")
@pytest.mark.spec("13.1")
def test_callers_without_a_key_share_the_history_of_an_open_agent(anonymous: Caller, binding: str) -> None:
    echo = anonymous.at("echo", binding)
    task = echo.say("hi", contextId=f"shared-{binding}")
    assert echo.get(task["id"]) == task
    assert [t["id"] for t in echo.list(contextId=f"shared-{binding}")["tasks"]] == [task["id"]]


@pytest.mark.case("U03")
@pytest.mark.spec("13.1")
def test_a_reference_to_somebody_elses_task_is_taken_and_shows_nothing(
    alice: Caller, bob: Caller, binding: str
) -> None:
    secret = alice.at("echo", binding).say("secret")
    task = bob.at("echo", binding).say("hi", referenceTaskIds=[secret["id"], "none"])
    assert task["artifacts"][0]["parts"] == [{"text": "hi"}]
    assert "secret" not in str(task)


@pytest.mark.case("U06")
@pytest.mark.spec("3.1.4")
def test_a_list_counts_the_callers_tasks_only(alice: Caller, bob: Caller, binding: str) -> None:
    for _ in range(3):
        alice.at("echo", binding).say(contextId="c")
    task = bob.at("echo", binding).say(contextId="c")
    queries: list[dict[str, Any]] = [{}, {"contextId": "c"}, {"status": "TASK_STATE_COMPLETED"}]
    for query in queries:
        page = bob.at("echo", binding).list(pageSize=1, **query)
        assert ([t["id"] for t in page["tasks"]], page["totalSize"], page["nextPageToken"]) == ([task["id"]], 1, "")


@pytest.mark.case("U06")
@pytest.mark.spec("3.1.4")
def test_a_list_is_of_one_agent(alice: Caller, binding: str) -> None:
    alice.at("echo", binding).say()
    assert alice.at("data", binding).list()["totalSize"] == 0


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
@pytest.mark.parametrize(
    ("header", "value", "challenge"),
    [
        ("", "", CHALLENGE),
        ("authorization", "", CHALLENGE),
        ("authorization", "Bearer", INVALID),
        ("authorization", "Bearer wrong", INVALID),
        ("authorization", "Bearer a2a_key-of-the-user-number-", INVALID),
        ("authorization", "bearer  x y", INVALID),
        ("authorization", "Basic YTpi", INVALID),
        ("authorization", "a2a_key-of-the-user-number-0001", INVALID),
        ("authorization", "Bearer " + "x" * 5000, INVALID),
        ("authorization", "Bearer \x80\xff", INVALID),
        ("x-api-key", "wrong", INVALID),
        ("cookie", "sessionid=x; key=a2a_key-of-the-user-number-0001", CHALLENGE),
    ],
)
def test_without_a_key_there_is_a_challenge(
    anonymous: Caller, json_binding: str, header: str, value: str, challenge: str
) -> None:
    peer = anonymous.at("order-agent", json_binding)
    named = peer.headers | ({header: value} if header else {})
    headers = {name.encode(): text.encode("latin-1") for name, text in named.items()}
    if json_binding == "jsonrpc":
        content = '{"jsonrpc":"2.0","id":"q1","method":"SendMessage","params":{"message":{}}}'
        response = anonymous.client.post(f"{peer.base}/agents/order-agent", content=content, headers=headers)
        assert response.json()["error"]["code"] == -32000
        assert response.json()["id"] == "q1"
    else:
        response = anonymous.client.get(f"{peer.base}/agents/order-agent/tasks", headers=headers)
        assert response.json()["error"]["status"] == "UNAUTHENTICATED"
    assert (response.status_code, response.headers["www-authenticate"]) == (401, challenge)
    assert response.headers["access-control-allow-origin"] == "*"


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
def test_every_operation_needs_the_key(anonymous: Caller, binding: str) -> None:
    peer = anonymous.at("order-agent", binding)
    for call in (peer.get, peer.cancel, peer.subscribe, peer.say, peer.say_streaming, peer.start):
        with anonymous.refused_while_running("UNAUTHENTICATED"):
            call("x")
    with anonymous.refused_while_running("UNAUTHENTICATED"):
        peer.list()


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER   {}", "header"])
def test_a_key_is_taken_in_its_forms(alice: Caller, anonymous: Caller, binding: str, form: str) -> None:
    peer = anonymous.at("order-agent", binding)
    key = alice.key or ""
    headers = {"x-api-key": key} if form == "header" else {"authorization": form.format(key)}
    task = peer.with_headers(**headers).say("查询订单 123")
    assert alice.at("order-agent", binding).get(task["id"]) == task


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
def test_a_wrong_key_is_refused_by_an_open_agent_too(anonymous: Caller, binding: str) -> None:
    """Whoever means to be known is never served as somebody else."""
    for headers in ({"authorization": "Bearer wrong"}, {"x-api-key": "wrong"}, {"authorization": "Basic YTpi"}):
        with anonymous.refused_while_running("UNAUTHENTICATED"):
            anonymous.at("echo", binding).with_headers(**headers).say("hi")


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
def test_two_different_keys_are_none(alice: Caller, bob: Caller, json_binding: str) -> None:
    peer = alice.at("order-agent", json_binding)
    pair = [("authorization", f"Bearer {alice.key}"), ("authorization", f"Bearer {bob.key}")]
    response = alice.client.get(f"{peer.base}/agents/order-agent/tasks", headers=pair)
    assert response.status_code == 401


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
@pytest.mark.parametrize("change", ["enabled = false", "expires_at = now()"])
def test_a_key_that_was_withdrawn_is_refused_soon(
    alice: Caller, deployment: Deployment, binding: str, change: str
) -> None:
    peer = alice.at("order-agent", binding)
    assert peer.list()["totalSize"] == 0
    deployment.query(f"UPDATE agents_apikey SET {change} WHERE owner = %s", [alice.owner])

    def is_refused() -> bool:
        try:
            peer.list()
        except Refused as refused:
            return refused.reason == "UNAUTHENTICATED"
        return False

    wait_until(is_refused, "the key to be refused", patience=2)
    with alice.refused("UNAUTHENTICATED"):
        peer.send({"message": message()})


@pytest.mark.spec("13.1")
@pytest.mark.parametrize("slug", ["hidden", "nobody", "ECHO", "Echo", "echo ", "echo\n", "..", "%00", "é", "x" * 5000])
def test_a_disabled_agent_looks_like_an_unknown_one(alice: Caller, binding: str, slug: str) -> None:
    peer = alice.at(slug.replace("\n", "%0A").replace("..", "%2E%2E"), binding)
    with alice.refused("AGENT_NOT_FOUND") as refused:
        peer.send({"message": message()})
    assert refused.value.message == "The agent does not exist."
    assert len(refused.value.metadata["agent"]) <= 200
