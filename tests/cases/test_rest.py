"""Area rest: error documents, content types, paths, bodies and queries (§11)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cases.test_lifecycle import at_work, state
from tests.support.callers import Caller
from tests.support.peers import message, refusal_of_rest


@pytest.mark.case("R01")
@pytest.mark.spec("11.6")
def test_an_error_is_a_google_rpc_status(alice: Caller) -> None:
    response = alice.rest("echo").ask("GET", "/tasks/none")
    assert (response.status_code, response.headers["content-type"]) == (404, "application/a2a+json")
    error = response.json()["error"]
    assert error["details"][0]["metadata"].pop("timestamp").endswith("Z")
    assert error == {
        "code": 404,
        "status": "NOT_FOUND",
        "message": "The task does not exist or is not accessible.",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "TASK_NOT_FOUND",
                "domain": "a2a-protocol.org",
                "metadata": {"taskId": "none"},
            }
        ],
    }


@pytest.mark.case("R01")
@pytest.mark.spec("11.6")
def test_wrong_parameters_are_named_in_a_bad_request(alice: Caller) -> None:
    response = alice.rest("echo").ask("GET", "/tasks", query={"pageSize": 0, "historyLength": -1})
    info, bad_request = response.json()["error"]["details"]
    assert (response.status_code, info["reason"]) == (400, "INVALID_PARAMS")
    assert bad_request == {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [
            {"field": "pageSize", "description": 'must be an integer from 1 to 100, got "0"'},
            {"field": "historyLength", "description": 'must be an integer from 0 to 2147483647, got "-1"'},
        ],
    }


@pytest.mark.case("R03")
@pytest.mark.spec("11.1")
@pytest.mark.parametrize(
    "content_type",
    [
        *("application/a2a+json", "application/json", "application/json; charset=utf-8", "APPLICATION/A2A+JSON"),
        *("application/a2a+json;charset=UTF-8", "application/json;charset=utf-8;x=y", "application/json ;x", ""),
    ],
)
def test_json_by_any_of_its_names(alice: Caller, content_type: str) -> None:
    for path in ("/message:send", "/message:stream"):
        body = {"message": message()}
        response = alice.rest("echo").ask("POST", path, body, content_type=content_type)
        assert response.status_code == 200
        if path == "/message:send":
            assert response.headers["content-type"] == "application/a2a+json"
    response = alice.jsonrpc("echo").post('{"jsonrpc":"2.0","id":1,"method":"ListTasks"}', content_type=content_type)
    assert response.json()["result"]["totalSize"] == 2


@pytest.mark.case("R03")
@pytest.mark.spec("11.1")
@pytest.mark.parametrize(
    "content_type",
    [
        *("text/plain", "text/json", "application/xml", "application/x-www-form-urlencoded", "json", "application/*"),
        *("multipart/form-data; boundary=x", "application/jsonp", "application/json, application/json"),
    ],
)
def test_another_content_type_is_refused(alice: Caller, binding: str, content_type: str) -> None:
    """By a web page's form, for one: it may send these without asking first."""
    peer = alice.at("echo", binding).with_headers(content_type=content_type)
    with alice.refused("UNSUPPORTED_MEDIA_TYPE") as refusal:
        peer.send({"message": message()})
    assert (refusal.value.status, refusal.value.metadata) == (415, {"contentType": content_type})


@pytest.mark.spec("11.1")
@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", "application/a2a+json"),
        ("application/a2a+json", "application/a2a+json"),
        ("application/json", "application/json"),
        ("application/json, application/a2a+json", "application/a2a+json"),
        ("text/html", "application/a2a+json"),
        ("text/event-stream", "application/a2a+json"),
        ("image/png;q=0.1", "application/a2a+json"),
        ("", "application/a2a+json"),
        ("nonsense", "application/a2a+json"),
    ],
)
def test_every_caller_gets_an_answer_it_can_read(alice: Caller, accept: str, content_type: str) -> None:
    rest = alice.rest("echo")
    for path, status in (("/tasks", 200), ("/tasks/none", 404)):
        response = rest.ask("GET", path, accept=accept)
        assert (response.status_code, response.headers["content-type"]) == (status, content_type)


@pytest.mark.case("R05")
@pytest.mark.spec("11.3.2")
@pytest.mark.parametrize("colon", [":", "%3A", "%3a"])
def test_a_colon_may_be_encoded(alice: Caller, colon: str) -> None:
    hold = alice.rest("hold")
    task = at_work(hold)["id"]
    with hold.open("POST", f"/tasks/{task}{colon}subscribe") as stream:
        assert stream.next().state == "WORKING"
    assert state(hold.call("POST", f"/tasks/{task}{colon}cancel")) == "CANCELED"
    echo = alice.rest("echo")
    assert state(echo.call("POST", f"/message{colon}send", {"message": message()})["task"]) == "COMPLETED"
    with echo.open("POST", f"/message{colon}stream", {"message": message()}) as stream:
        assert stream.rest()[-1].state == "COMPLETED"


@pytest.mark.case("R05")
@pytest.mark.spec("11.3.2")
def test_any_character_of_a_path_may_be_encoded(alice: Caller) -> None:
    echo = alice.rest("echo")
    task = echo.say()
    encoded = "".join(f"%{ord(c):02X}" for c in task["id"])
    assert echo.call("GET", f"/tasks/{encoded}") == task
    assert echo.call("GET", f"/t%61sks/{task['id']}") == task


@pytest.mark.case("R07")
@pytest.mark.case("R08")
@pytest.mark.spec("11.3.2")
@pytest.mark.parametrize(("verb", "body"), [("POST", None), ("POST", {}), ("GET", None), ("POST", {"id": "other"})])
def test_subscribe_takes_post_and_get(alice: Caller, verb: str, body: dict[str, str] | None) -> None:
    hold = alice.rest("hold")
    task = at_work(hold)["id"]
    with hold.open(verb, f"/tasks/{task}:subscribe", body) as stream:
        assert stream.next().response["task"]["id"] == task
        hold.cancel(task)
        assert stream.rest()[-1].state == "CANCELED"
    with alice.refused("TASK_NOT_FOUND") as refusal:
        hold.open(verb, "/tasks/none:subscribe", body)
    assert refusal.value.metadata == {"taskId": "none"}


@pytest.mark.case("R09")
@pytest.mark.spec("11.6")
@pytest.mark.parametrize(
    ("segment", "id"),
    [
        ("a%2Fb", "a/b"),
        ("%E4%BD%A0", "你"),
        ("a%20b", "a b"),
        ("a+b", "a+b"),
        ("a%0Ab%0D", "a\nb\r"),
        ("%2E%2E", ".."),
        ("%2F", "/"),
        ("a%3Fb%23c", "a?b#c"),
        ("%25", "%"),
        ("%2500", "%00"),
        ("a:b", "a:b"),
        ("x:unknown", "x:unknown"),
        (":cancel", ":cancel"),
        ("%FF", "\ufffd"),
        ("%", "%"),
        ("%zz", "%zz"),
        ("<b>&quot;", "<b>&quot;"),
    ],
)
def test_ids_of_a_path_are_decoded_once(alice: Caller, segment: str, id: str) -> None:
    with alice.refused("TASK_NOT_FOUND") as refusal:
        alice.rest("echo").call("GET", f"/tasks/{segment}")
    assert refusal.value.metadata == {"taskId": id}


@pytest.mark.case("R11")
@pytest.mark.spec("11.6")
@pytest.mark.parametrize(
    ("verb", "path", "status", "allow"),
    [
        ("POST", "/message:send/", 404, None),
        ("GET", "/tasks/", 404, None),
        ("GET", "/nope", 404, None),
        ("GET", "/message:nope", 404, None),
        ("POST", "/message", 404, None),
        ("GET", "//tasks", 404, None),
        ("GET", "/tasks/a/b/c/d", 404, None),
        ("GET", "/tasks/a/pushNotificationConfigs/", 404, None),
        ("POST", "/v1/message:send", 404, None),
        ("GET", "/card", 404, None),
        ("PUT", "/tasks/x", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/tasks/x", 405, "GET, HEAD, OPTIONS"),
        ("DELETE", "/tasks/x", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/tasks", 405, "GET, HEAD, OPTIONS"),
        ("GET", "/message:send", 405, "POST, OPTIONS"),
        ("PUT", "/message:send", 405, "POST, OPTIONS"),
        ("GET", "/message:stream", 405, "POST, OPTIONS"),
        ("GET", "/tasks/x:cancel", 405, "POST, OPTIONS"),
        ("DELETE", "/tasks/x:subscribe", 405, "GET, POST, OPTIONS"),
        ("HEAD", "/message:send", 405, "POST, OPTIONS"),
        ("HEAD", "/tasks/x:subscribe", 405, "GET, POST, OPTIONS"),
        ("HEAD", "", 405, "POST, OPTIONS"),
        ("PATCH", "/tasks/x:cancel", 405, "POST, OPTIONS"),
        ("TRACE", "/tasks", 405, "GET, HEAD, OPTIONS"),
        ("PUT", "/tasks/x/pushNotificationConfigs", 405, "GET, HEAD, POST, OPTIONS"),
        ("POST", "/tasks/x/pushNotificationConfigs/y", 405, "GET, HEAD, DELETE, OPTIONS"),
        ("POST", "/extendedAgentCard", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/.well-known/agent-card.json", 405, "GET, HEAD, OPTIONS"),
        ("DELETE", "/.well-known/agent.json", 405, "GET, HEAD, OPTIONS"),
        ("GET", "/.well-known/agent-card.json/", 404, None),
        ("GET", "", 405, "POST, OPTIONS"),
        ("GET", "/", 405, "POST, OPTIONS"),
        ("PUT", "", 405, "POST, OPTIONS"),
        ("DELETE", "/", 405, "POST, OPTIONS"),
    ],
)
def test_what_is_not_there_or_not_allowed(
    alice: Caller, verb: str, path: str, status: int, allow: str | None
) -> None:
    with alice.nothing_stored():
        response = alice.rest("echo").ask(verb, path, {"message": message()} if verb != "GET" else None)
    assert response.status_code == status
    if verb != "HEAD":
        assert refusal_of_rest(status, response.json()).status == status
    assert response.headers["content-type"] == "application/a2a+json"
    assert response.headers.get("allow") == allow
    assert "location" not in response.headers


@pytest.mark.case("R13")
@pytest.mark.spec("11.3.2")
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", None),
        (b"", "application/json"),
        (b"", "text/plain"),
        (b"{}", "application/a2a+json"),
        (b"{}", None),
        (b"null", None),
        (b'{"metadata":{"r":"x"}}', "application/json"),
        (b'{"metadata":null,"tenant":"","colour":1}', "application/json"),
    ],
)
def test_a_cancel_needs_no_body(alice: Caller, body: bytes, content_type: str | None) -> None:
    hold = alice.rest("hold")
    task = at_work(hold)["id"]
    url = f"{hold.base}/agents/hold/tasks/{task}:cancel"
    headers = alice.headers | ({"content-type": content_type} if content_type else {})
    response = alice.client.post(url, content=body, headers=headers)
    assert response.status_code == 200
    assert state(response.json()) == "CANCELED"


@pytest.mark.case("R13")
@pytest.mark.spec("11.3.2")
@pytest.mark.parametrize(
    ("body", "field"), [("[]", ""), ('"x"', ""), ('{"metadata":[]}', "metadata"), ('{"metadata":"x"}', "metadata")]
)
def test_a_wrong_body_of_a_cancel_cancels_nothing(alice: Caller, body: str, field: str) -> None:
    hold = alice.rest("hold")
    task = at_work(hold)["id"]
    with alice.refused("INVALID_PARAMS", field):
        hold.call("POST", f"/tasks/{task}:cancel", body)
    assert state(hold.get(task)) == "WORKING"
    hold.cancel(task)


@pytest.mark.case("R14")
@pytest.mark.spec("11.3.2")
def test_the_path_wins_over_the_body(alice: Caller) -> None:
    hold = alice.rest("hold")
    first, second = at_work(hold)["id"], at_work(hold)["id"]
    for body in ({"id": second}, {"id": 5}, {"id": None}, {"id": ""}):
        with alice.refused("TASK_NOT_FOUND") as refusal:
            hold.call("POST", "/tasks/none:cancel", body)
        assert refusal.value.metadata == {"taskId": "none"}
    assert hold.call("POST", f"/tasks/{first}:cancel", {"id": second})["id"] == first
    assert state(hold.get(second)) == "WORKING"
    assert hold.call("GET", f"/tasks/{second}", query={"id": first})["id"] == second
    hold.cancel(second)


@pytest.mark.case("R15")
@pytest.mark.spec("11.5")
def test_all_parameters_of_a_query_count(alice: Caller) -> None:
    echo = alice.rest("echo")
    task = echo.say("hi", contextId="c+1 ž")
    echo.say("hi", contextId="c 1")
    for query in (
        "includeArtifacts=true&historyLength=1&contextId=c%2B1+%C5%BE",
        "include_artifacts=true&history_length=1&context_id=c%2B1%20ž",
        "contextId=c%2B1%20%c5%be&unknown=1&historyLength=1&includeArtifacts=true&&",
    ):
        page = echo.call("GET", f"/tasks?{query}")
        assert (page["tasks"], page["totalSize"]) == ([task], 1)
    for query in ("contextId=c+1", "contextId=c%201", "status=3&contextId=c+1&pageSize=1&pageToken="):
        assert echo.call("GET", f"/tasks?{query}")["totalSize"] == 1


@pytest.mark.case("R15")
@pytest.mark.spec("11.5")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("includeArtifacts=yes", "includeArtifacts"),
        ("includeArtifacts=True", "includeArtifacts"),
        ("includeArtifacts=1", "includeArtifacts"),
        ("includeArtifacts", "includeArtifacts"),
        ("includeArtifacts=true&includeArtifacts=false", "includeArtifacts"),
        ("contextId=a&contextId=b", "contextId"),
        ("historyLength=-1", "historyLength"),
        ("status=completed", "status"),
        ("contextId=%00", "contextId"),
        ("pageSize=", "pageSize"),
    ],
)
def test_wrong_parameters_of_a_query(alice: Caller, query: str, field: str) -> None:
    with alice.refused("INVALID_PARAMS", field):
        alice.rest("echo").call("GET", f"/tasks?{query}")


@pytest.mark.case("P16")
@pytest.mark.spec("3.3.4")
def test_push_configs_are_not_supported_yet(alice: Caller) -> None:
    """Before anything else is looked at: the agent has not the capability."""
    echo, rpc = alice.rest("echo"), alice.jsonrpc("echo")
    config = {"url": "https://hook.test/"}
    task = echo.say()["id"]
    calls: list[Callable[[], object]] = []
    for id in (task, "none"):
        path = f"/tasks/{id}/pushNotificationConfigs"
        calls += [
            lambda path=path: echo.call("POST", path, config),  # type: ignore[misc]
            lambda path=path: echo.call("GET", path),  # type: ignore[misc]
            lambda path=path: echo.call("GET", f"{path}/c"),  # type: ignore[misc]
            lambda path=path: echo.call("DELETE", f"{path}/c"),  # type: ignore[misc]
        ]
        for name in ("Create", "Get", "Delete"):
            method = f"{name}TaskPushNotificationConfig"
            calls.append(lambda id=id, method=method: rpc.call(method, config | {"taskId": id}))  # type: ignore[misc]
    calls.append(lambda: rpc.call("ListTaskPushNotificationConfigs", None))
    for call in calls:
        with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
            call()


@pytest.mark.case("P16")
@pytest.mark.spec("3.3.4")
def test_a_send_with_a_push_config_is_refused_as_a_whole(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    for send in (echo.say, echo.start):
        with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
            configuration = {"taskPushNotificationConfig": {"url": "https://hook.test/"}}
            if send == echo.say:
                send("hi", configuration=configuration)
            else:
                echo.say("hi", configuration=configuration | {"returnImmediately": True})
    with alice.refused("INVALID_PARAMS", "configuration.taskPushNotificationConfig.url"):
        echo.say("hi", configuration={"taskPushNotificationConfig": {}})
    with alice.refused("INVALID_PARAMS", "configuration.taskPushNotificationConfig.taskId"):
        echo.say("hi", configuration={"taskPushNotificationConfig": {"url": "https://hook.test/", "taskId": "x"}})


@pytest.mark.case("D08")
@pytest.mark.spec("3.3.4")
def test_there_is_no_extended_card_yet(alice: Caller) -> None:
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.rest("echo").call("GET", "/extendedAgentCard")
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.jsonrpc("echo").call("GetExtendedAgentCard", {})


@pytest.mark.spec("5.1")
def test_both_bindings_show_the_same(alice: Caller) -> None:
    rpc, rest = alice.jsonrpc("data"), alice.rest("data")
    task = rpc.say([{"data": {"n": 1}}, {"raw": "AAA="}], contextId="c", metadata={"k": [1.0]})
    assert rest.get(task["id"]) == rpc.get(task["id"]) == task
    assert rest.list(includeArtifacts=True) == rpc.list(includeArtifacts=True)
    texts = [
        alice.client.get(f"{rest.base}/agents/data/tasks/{task['id']}", headers=alice.headers).text,
        rpc.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task["id"]}})).text,
    ]
    assert texts[1] == f'{{"jsonrpc":"2.0","id":1,"result":{texts[0]}}}'
