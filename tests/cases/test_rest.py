"""Area rest: error documents, content types, paths, bodies and queries (§11)."""

from __future__ import annotations

import json

import pytest

from tests.cases.reading import at_work, state
from tests.support.callers import Caller
from tests.support.peers import message


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
        "message": "The task was not found or is not accessible.",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "TASK_NOT_FOUND",
                "domain": "a2a-protocol.org",
                "metadata": {"taskId": "none", "legacyCode": "-32102"},
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
            own_name = content_type.partition(";")[0].strip().lower() or "application/a2a+json"
            assert response.headers["content-type"] == own_name
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
def test_another_content_type_is_refused(alice: Caller, json_binding: str, content_type: str) -> None:
    """By a web page's form, for one: it may send these without asking first."""
    peer = alice.at("echo", json_binding).with_headers(content_type=content_type)
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
    for path, status in (("/tasks", 200), ("/tasks/none", 404), ("/nowhere", 404)):
        response = rest.ask("GET", path, accept=accept)
        assert (response.status_code, response.headers["content-type"]) == (status, content_type)


@pytest.mark.spec("11.1")
@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", "application/json"),
        ("application/json, text/plain, */*", "application/json"),
        ("application/*", "application/json"),
        ("", "application/json"),
        ("Application/A2A+JSON", "application/a2a+json"),
        ("application/json, application/a2a+json", "application/a2a+json"),
    ],
)
def test_a_caller_without_a_wish_is_answered_in_the_media_type_of_its_request(
    alice: Caller, accept: str, content_type: str
) -> None:
    rest = alice.rest("echo")
    bodies = (("/message:send", {"message": message()}, 200), ("/message:send", {}, 400), ("/nowhere", {}, 404))
    for path, body, status in bodies:
        response = rest.ask("POST", path, body, content_type="application/json; charset=utf-8", accept=accept)
        assert (response.status_code, response.headers["content-type"]) == (status, content_type)


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
