"""Area jsonrpc: the envelope, ids, error data (§9)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.callers import Caller
from tests.support.deployment import wait_until
from tests.support.peers import envelope, message
from tests.support.refusals import refusal_of_rpc


def reply(caller: Caller, body: str | bytes, slug: str = "echo", **headers: str) -> dict[str, Any]:
    """The JSON-RPC reply to a body, which must come with HTTP 200."""
    response = caller.jsonrpc(slug).post(body, **headers)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    found: dict[str, Any] = response.json()
    return found


NO_JSON = [
    b'{"jsonrpc":"2.0","id":4,"method":',
    b"",
    b" \r\n",
    b"hello",
    b"{]",
    b'{"jsonrpc":"2.0","id":4,"method":"GetTask","params":{"id":"x"}} {}',
    b'{"jsonrpc":"2.0","id":4,"method":"GetTask","params":{"id":"x",}}',
    b"{'jsonrpc':'2.0'}",
    b'{"jsonrpc":"2.0","id":4,"method":"GetTask","params":{"id":"\xff\xfe"}}',
    b'{"jsonrpc":"2.0","id":4,"method":"GetTask","params":{"id":"a\nb"}}',
    b'\xff\xfe{\x00"\x00}\x00',
    b"\xef\xbb\xbf{}",
    b"[" * 100_000,
]


@pytest.mark.case("J01")
@pytest.mark.spec("9.5")
@pytest.mark.parametrize("body", NO_JSON, ids=lambda body: repr(body[:40]))
def test_what_is_not_json_is_a_parse_error(alice: Caller, body: bytes) -> None:
    with alice.nothing_stored():
        refused = refusal_of_rpc(200, reply(alice, body), id=None)
    assert refused.code == -32700


@pytest.mark.case("J03")
@pytest.mark.spec("9.3")
@pytest.mark.parametrize(
    "id",
    [
        *('"7"', "7", "9007199254740993", "-1", "0", '""', '"a b"', '"\\u00e9"', '"\\n"', '"你好"', "null"),
        *("1" + "0" * 400, '"' + "x" * 1000 + '"', "-9223372036854775809", "18446744073709551616"),
    ],
    ids=lambda id: id[:30],
)
def test_the_id_comes_back_as_it_was(alice: Caller, id: str) -> None:
    echo = alice.jsonrpc("echo")
    head = '{"jsonrpc":"2.0","id":' + id
    for rest, outcome in [
        (',"method":"GetTask","params":{"id":"none"}}', b'"error"'),
        (',"method":"GetTask","params":{}}', b'"error"'),
        (',"method":"Nope"}', b'"error"'),
        (',"method":"ListTasks","params":{}}', b'"result"'),
    ]:
        body = echo.post(head + rest).content
        assert body.startswith(head.encode() + b"," + outcome)


@pytest.mark.case("J03")
@pytest.mark.spec("9.3")
def test_the_id_comes_back_in_any_place_of_the_request(alice: Caller) -> None:
    body = alice.jsonrpc("echo").post('{"params":{"id":"none"},"method":"GetTask","id":"last","jsonrpc":"2.0"}').json()
    assert refusal_of_rpc(200, body, id="last").code == -32001


@pytest.mark.case("J05")
@pytest.mark.spec("9.3")
@pytest.mark.parametrize("id", ["1.5", "1.0", "1e3", "true", "false", "{}", "[]", '["q1"]', "-0.0"])
def test_other_ids_are_invalid_requests(alice: Caller, id: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":{id},"method":"SendMessage","params":{{"message":{json.dumps(message())}}}}}'
    with alice.nothing_stored():
        assert refusal_of_rpc(200, reply(alice, body), id=None).code == -32600


@pytest.mark.case("J05")
@pytest.mark.spec("9.3")
def test_an_explicit_null_is_an_id(alice: Caller) -> None:
    assert refusal_of_rpc(200, reply(alice, envelope("GetTask", {"id": "none"}, id=None)), id=None).code == -32001
    result = reply(alice, envelope("ListTasks", {}, id=None))
    assert result == {
        "jsonrpc": "2.0",
        "id": None,
        "result": {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0},
    }


def notification(method: str, params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


@pytest.mark.case("J06")
@pytest.mark.spec("9.1")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("GetTask", {"id": "none"}),
        ("GetTask", {}),
        ("GetTask", []),
        ("ListTasks", {}),
        ("ListTasks", {"pageSize": 0}),
        ("CancelTask", {"id": "none"}),
        ("SubscribeToTask", {"id": "none"}),
        ("Nope", {}),
        ("GetExtendedAgentCard", {}),
        ("SendMessage", {}),
        ("SendStreamingMessage", {}),
    ],
)
def test_a_notification_has_no_reply_also_when_it_fails(alice: Caller, method: str, params: Any) -> None:
    with alice.nothing_stored():
        response = alice.jsonrpc("echo").post(notification(method, params))
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-origin"] == "*"


@pytest.mark.case("J06")
@pytest.mark.spec("9.1")
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_a_notification_does_its_work(alice: Caller, method: str) -> None:
    echo = alice.jsonrpc("echo")
    response = echo.post(notification(method, {"message": message("quiet")}))
    assert (response.status_code, response.content) == (204, b"")
    wait_until(lambda: echo.list(status="TASK_STATE_COMPLETED")["tasks"], "the end of the task")
    (task,) = echo.list(includeArtifacts=True)["tasks"]
    assert task["artifacts"][0]["parts"] == [{"text": "quiet"}]


@pytest.mark.case("J06")
@pytest.mark.spec("9.5")
def test_what_is_no_request_is_no_notification_either(alice: Caller) -> None:
    assert refusal_of_rpc(200, reply(alice, '{"jsonrpc":"1.0","method":"GetTask"}'), id=None).code == -32600
    assert refusal_of_rpc(200, reply(alice, '{"jsonrpc":"2.0","method":5}'), id=None).code == -32600


@pytest.mark.case("J08")
@pytest.mark.spec("9.3")
@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "[1]",
        f"[{envelope('SendMessage', {'message': message()}, id=1)},{envelope('GetTask', {'id': 'x'}, id=2)}]",
        f"[{envelope('SendMessage', {'message': message()}, id=1)}]",
        *("1", '"x"', "null", "true", "1.5"),
    ],
    ids=lambda body: body[:20],
)
def test_a_batch_is_one_invalid_request(alice: Caller, body: str) -> None:
    with alice.nothing_stored():
        refused = refusal_of_rpc(200, reply(alice, body), id=None)
    assert refused.code == -32600
    assert alice.jsonrpc("echo").list()["totalSize"] == 0


@pytest.mark.case("J10")
@pytest.mark.spec("9.3")
@pytest.mark.parametrize("version", ['"1.0"', '"2"', '"2.0.0"', '""', "2.0", "2", "null", "true", "[]", None])
@pytest.mark.parametrize("id", ['"q1"', "7"])
def test_another_jsonrpc_version_is_refused_with_the_id(alice: Caller, version: str | None, id: str) -> None:
    member = "" if version is None else f'"jsonrpc":{version},'
    body = f'{{{member}"id":{id},"method":"SendMessage","params":{{"message":{json.dumps(message())}}}}}'
    with alice.nothing_stored():
        refused = refusal_of_rpc(200, reply(alice, body), id=json.loads(id))
    assert refused.code == -32600


@pytest.mark.case("J11")
@pytest.mark.spec("9.1")
@pytest.mark.parametrize(
    "method",
    ["getTask", "Nope", "GETTASK", "gettask", "GetTask ", " GetTask", "SendMessage\x00", "rpc.GetTask", "Get Task"],
)
def test_an_unknown_method_is_not_found(alice: Caller, method: str) -> None:
    refused = refusal_of_rpc(200, reply(alice, envelope(method, {"id": "none"})))
    assert refused.code == -32601
    assert refused.metadata == {"method": method}


@pytest.mark.case("J11")
@pytest.mark.spec("9.1")
@pytest.mark.parametrize("method", ['""', "5", "null", "true", "{}", '["GetTask"]', None])
def test_a_method_without_a_name_is_an_invalid_request(alice: Caller, method: str | None) -> None:
    member = "" if method is None else f',"method":{method}'
    refused = refusal_of_rpc(200, reply(alice, f'{{"jsonrpc":"2.0","id":"q1"{member},"params":{{"id":"none"}}}}'))
    assert refused.code == -32600


@pytest.mark.case("J12")
@pytest.mark.spec("5.3")
@pytest.mark.parametrize(
    "method",
    [
        *("tasks/get", "message/send", "message/stream", "tasks/cancel", "tasks/resubscribe"),
        *("tasks/pushNotificationConfig/set", "agent/getAuthenticatedExtendedCard"),
    ],
)
def test_a_method_of_0_3_is_unknown_to_1_0(alice: Caller, method: str) -> None:
    with alice.nothing_stored():
        refused = refusal_of_rpc(200, reply(alice, envelope(method, {"id": "none", "message": message()})))
    assert refused.code == -32601


@pytest.mark.case("J13")
@pytest.mark.spec("5.7")
@pytest.mark.parametrize("params", [None, {}, "null"])
@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("GetTask", "id"),
        ("CancelTask", "id"),
        ("SubscribeToTask", "id"),
        ("SendMessage", "message"),
        ("SendStreamingMessage", "message"),
    ],
)
def test_missing_parameters_are_named(alice: Caller, method: str, field: str, params: Any) -> None:
    with alice.nothing_stored():
        refused = refusal_of_rpc(200, reply(alice, envelope(method, params)))
    assert (refused.code, refused.violations) == (-32602, {field: "is required"})
    assert refused.message == "Invalid parameters"


@pytest.mark.case("J13")
@pytest.mark.spec("5.7")
@pytest.mark.parametrize("params", ["[]", '["none"]', '"none"', "5", "true"])
def test_parameters_are_an_object(alice: Caller, params: str) -> None:
    for method in ("GetTask", "ListTasks", "SendMessage"):
        refused = refusal_of_rpc(200, reply(alice, envelope(method, params)))
        assert (refused.code, refused.violations) == (-32602, {"": "must be an object"})


@pytest.mark.case("J15")
@pytest.mark.spec("9.4.8")
@pytest.mark.parametrize("params", [None, {}, {"tenant": ""}])
def test_the_extended_card_needs_no_parameters(alice: Caller, params: Any) -> None:
    """No agent has one yet: the refusal is that of the capability, not of the parameters."""
    refused = refusal_of_rpc(200, reply(alice, envelope("GetExtendedAgentCard", params)))
    assert (refused.code, refused.reason) == (-32004, "UNSUPPORTED_OPERATION")


@pytest.mark.case("J16")
@pytest.mark.spec("9.5")
@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
def test_error_data_is_an_array_of_typed_details(alice: Caller, method: str) -> None:
    error = reply(alice, envelope(method, {"id": "none"}))["error"]
    (info,) = error["data"]
    timestamp = info["metadata"].pop("timestamp")
    assert error == {
        "code": -32001,
        "message": "The task was not found or is not accessible.",
        "data": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "TASK_NOT_FOUND",
                "domain": "a2a-protocol.org",
                "metadata": {"taskId": "none", "legacyCode": "-32102"},
            }
        ],
    }
    assert timestamp.endswith("Z")


OPAQUE = ["msg-1", "1", " ", "a b", "..", "/", "a/b?c#d", "' OR 1=1 --", "{}", "null", "%00", "你好", "😀", "\\", '"']
OPAQUE += ["\t\n", "{a,b}", "NULL", "x" * 255, "\ufeff", "\u202e", "0x1", "\x7f", "\x1f"]


@pytest.mark.case("J18")
@pytest.mark.spec("4.1.4")
@pytest.mark.parametrize("id", OPAQUE, ids=ascii)
def test_message_ids_are_opaque(alice: Caller, binding: str, id: str) -> None:
    echo = alice.at("echo", binding)
    task = echo.say("hi", messageId=id)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [m["messageId"] for m in echo.get(task["id"])["history"]] == [id]


@pytest.mark.case("J18")
@pytest.mark.spec("3.4.1")
@pytest.mark.parametrize("id", OPAQUE, ids=ascii)
def test_context_ids_are_opaque(alice: Caller, binding: str, id: str) -> None:
    echo = alice.at("echo", binding)
    task = echo.say("hi", contextId=id)
    assert task["contextId"] == id
    assert [t["id"] for t in echo.list(contextId=id)["tasks"]] == [task["id"]]


@pytest.mark.case("J18")
@pytest.mark.spec("4.1.1")
@pytest.mark.parametrize("id", OPAQUE, ids=ascii)
def test_unknown_task_ids_are_not_found_whatever_they_look_like(alice: Caller, binding: str, id: str) -> None:
    echo = alice.at("echo", binding)
    for call in (echo.get, echo.cancel, echo.subscribe):
        with alice.refused("TASK_NOT_FOUND") as refusal:
            call(id)
        assert refusal.value.metadata == {"taskId": id}
    with alice.refused("TASK_NOT_FOUND"):
        echo.say("hi", taskId=id)


@pytest.mark.case("J20")
@pytest.mark.spec("5.1")
def test_a_member_given_twice_is_refused_in_both_bindings(alice: Caller, json_binding: str) -> None:
    twice = '{"message":{"messageId":"a","messageId":"b","role":"ROLE_USER","parts":[{"text":"hi"}]}}'
    with alice.refused("INVALID_PARAMS", "message.messageId"):
        alice.at("echo", json_binding).send(twice)
