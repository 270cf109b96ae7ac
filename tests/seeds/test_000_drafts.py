"""Requests of a description of A2A that mixes 1.0 with drafts of it: typed parts, `sessionId`, `taskId` beside the
message, no `messageId`, `A2A-Version: 1.0.0`, and error codes of its own.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.seeds.reading import post, stream
from tests.support.callers import Caller

HEADERS = {"Content-Type": "application/json", "A2A-Version": "1.0.0"}
# fmt: off
SEND = """{
  "jsonrpc": "2.0",
  "id": "req-001",
  "method": "SendMessage",
  "params": {
    "message": {
      "role": "ROLE_USER",
      "parts": [{"type": "text", "text": "分析最新 AI 趋势"}]
    },
    "taskId": "optional-existing-task-id",
    "sessionId": "session-123"
  }
}"""
STREAM = """{
  "jsonrpc": "2.0",
  "id": "req-002",
  "method": "SendStreamingMessage",
  "params": {
    "message": {
      "role": "ROLE_USER",
      "parts": [{"type": "text", "text": "写一段 Python 代码"}]
    }
  }
}"""
MESSAGE = """{
  "messageId": "msg-001",
  "role": "ROLE_USER",
  "parts": [
    {"type": "text", "text": "Hello"},
    {"type": "file", "file": {"name": "doc.pdf", "uri": "https://..."}},
    {"type": "data", "data": {"key": "value"}}
  ],
  "referenceTaskIds": []
}"""
# fmt: on
NEW = SEND.replace('    "taskId": "optional-existing-task-id",\n', "")


def rpc(params: str, method: str = "SendMessage") -> str:
    return f'{{"jsonrpc":"2.0","id":"req-001","method":"{method}","params":{params}}}'


def send(caller: Caller, slug: str, body: str) -> Any:
    """The reply to a request, whose headers are those of the document."""
    response = post(caller, f"/agents/{slug}", body, HEADERS)
    assert response.status_code == 200, response.text
    return response.json()


def error_of(reply: Any) -> tuple[int, str | None]:
    """(code, legacy code) of an error."""
    error = reply["error"]
    return error["code"], error["data"][0]["metadata"].get("legacyCode")


def fields_of(reply: Any) -> list[tuple[str, str]]:
    """What is wrong with a request, by field."""
    (violations,) = [d["fieldViolations"] for d in reply["error"]["data"] if "fieldViolations" in d]
    return [(v["field"], v["description"]) for v in violations]


def test_send_message(alice: Caller) -> None:
    reply = send(alice, "echo", NEW)
    assert (reply["jsonrpc"], reply["id"], list(reply["result"])) == ("2.0", "req-001", ["task"])
    task = reply["result"]["task"]
    part = {"type": "text", "text": "分析最新 AI 趋势"}
    assert (task["contextId"], task["status"]["state"]) == ("session-123", "TASK_STATE_COMPLETED")
    assert task["artifacts"][0]["parts"] == [part]
    (message,) = task["history"]
    assert (message["role"], message["parts"], message["contextId"]) == ("ROLE_USER", [part], "session-123")
    assert len(message["messageId"]) == 36
    # One stored task: a client of 1.0 finds it in its own words.
    stored = alice.jsonrpc("echo").get(task["id"])
    assert stored["artifacts"][0]["parts"] == [{"text": "分析最新 AI 趋势"}]
    assert stored["history"][0]["messageId"] == message["messageId"]


def test_an_unknown_task(alice: Caller) -> None:
    with alice.nothing_stored():
        reply = send(alice, "echo", SEND)
    assert error_of(reply) == (-32001, "-32102")
    assert reply["error"]["data"][0]["metadata"]["taskId"] == "optional-existing-task-id"


def test_every_send_without_a_message_id_is_a_new_one(alice: Caller) -> None:
    first, second = (send(alice, "echo", NEW)["result"]["task"] for _ in range(2))
    assert first["id"] != second["id"]
    assert first["history"][0]["messageId"] != second["history"][0]["messageId"]
    assert first["contextId"] == second["contextId"] == "session-123"


def test_customer_service_in_several_turns(alice: Caller) -> None:
    """`taskId` and `sessionId` beside the message go on with the task."""
    asked = send(alice, "ask", NEW)["result"]["task"]
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert asked["status"]["message"]["parts"] == [{"type": "text", "text": "What should I know before I go on?"}]
    answered = send(alice, "ask", SEND.replace("optional-existing-task-id", asked["id"]))["result"]["task"]
    assert (answered["id"], answered["contextId"]) == (asked["id"], "session-123")
    assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [message["role"] for message in answered["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]


def test_the_session_of_another_task(alice: Caller) -> None:
    asked = send(alice, "ask", NEW)["result"]["task"]
    other = SEND.replace("optional-existing-task-id", asked["id"]).replace("session-123", "session-124")
    with alice.nothing_stored():
        reply = send(alice, "ask", other)
    assert fields_of(reply) == [("sessionId", "is not the context of the task")]


def test_data_analysis_with_text_file_and_data(alice: Caller) -> None:
    params = f'{{"message": {MESSAGE}, "sessionId": "session-123"}}'
    task = send(alice, "data", rpc(params))["result"]["task"]
    file = {"name": "doc.pdf", "uri": "https://..."}
    assert task["artifacts"][0]["parts"] == [
        {"type": "text", "text": "Hello"},
        {"type": "file", "file": file, "url": "https://...", "filename": "doc.pdf"},
        {"type": "data", "data": {"key": "value"}},
    ]
    assert task["history"][0]["messageId"] == "msg-001"
    assert alice.rest("data").get(task["id"])["artifacts"][0]["parts"] == [
        {"text": "Hello"},
        {"url": "https://...", "filename": "doc.pdf"},
        {"data": {"key": "value"}},
    ]
    with alice.nothing_stored():
        assert send(alice, "data", rpc(params))["result"]["task"]["id"] == task["id"]  # the same messageId: a retry


def test_a_file_with_its_content(alice: Caller) -> None:
    file = {"name": "a.bin", "mimeType": "application/octet-stream", "bytes": "AAEC_w"}
    params = {"message": {"role": "ROLE_USER", "parts": [{"type": "file", "file": file, "metadata": {"n": 1}}]}}
    (part,) = send(alice, "data", rpc(json.dumps(params)))["result"]["task"]["artifacts"][0]["parts"]
    assert part == {
        "type": "file",
        "file": {"name": "a.bin", "mimeType": "application/octet-stream", "bytes": "AAEC/w=="},
        "raw": "AAEC/w==",
        "metadata": {"n": 1},
        "filename": "a.bin",
        "mediaType": "application/octet-stream",
    }


def test_streaming(alice: Caller) -> None:
    """Events are named, and what the document has as their data stands beside the JSON-RPC result of 1.0."""
    found = stream(alice, "/agents/echo", STREAM, HEADERS)
    assert [name for name, _ in found] == ["message", "message", "message", "task"]
    submitted, working, said, done = (data for _, data in found)
    assert all((data["jsonrpc"], data["id"]) == ("2.0", "req-002") for _, data in found)
    assert submitted["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert working["task"]["status"]["state"] == "TASK_STATE_WORKING"
    assert said["message"]["parts"] == [{"type": "text", "text": "写一段 Python 代码"}]
    assert done["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done["task"]["artifacts"][0]["parts"] == said["message"]["parts"]
    assert [list(data["result"]) for _, data in found] == [
        ["task"],
        ["statusUpdate"],
        ["artifactUpdate"],
        ["statusUpdate"],
    ]
    assert said["result"]["artifactUpdate"]["artifact"]["parts"] == said["message"]["parts"]
    assert done["result"]["statusUpdate"]["status"] == done["task"]["status"]


def test_streaming_an_answer_without_a_task(alice: Caller) -> None:
    ((name, data),) = stream(alice, "/agents/direct", STREAM, HEADERS)
    assert (name, list(data)) == ("message", ["jsonrpc", "id", "result", "message"])
    assert data["message"]["parts"] == [{"type": "text", "text": "写一段 Python 代码"}]
    assert data["result"] == {"message": data["message"]}


def test_a_stream_that_asks_back_ends_with_the_whole_task(alice: Caller) -> None:
    *_, (name, data) = stream(alice, "/agents/ask", STREAM, HEADERS)
    assert (name, data["task"]["status"]["state"]) == ("task", "TASK_STATE_INPUT_REQUIRED")
    assert data["task"]["history"][0]["parts"] == [{"type": "text", "text": "写一段 Python 代码"}]


def test_other_requests_stream_as_ever(alice: Caller) -> None:
    body = rpc('{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}', "SendStreamingMessage")
    found = stream(alice, "/agents/echo", body, HEADERS)
    assert {name for name, _ in found} == {""}
    assert all(list(data) == ["jsonrpc", "id", "result"] for _, data in found)


def test_http_json(alice: Caller) -> None:
    body = '{"message":{"role":"ROLE_USER","parts":[{"type":"text","text":"Hello"}]},"sessionId":"session-123"}'
    response = post(alice, "/agents/echo/message:send", body, HEADERS)
    task = response.json()["task"]
    assert (response.status_code, task["contextId"]) == (200, "session-123")
    assert task["artifacts"][0]["parts"] == [{"type": "text", "text": "Hello"}]
    found = stream(alice, "/agents/echo/message:stream", body, HEADERS)
    assert [list(data) for _, data in found] == [["task"], ["statusUpdate"], ["artifactUpdate"], ["statusUpdate"]]
    assert found[2][1]["artifactUpdate"]["artifact"]["parts"] == [{"type": "text", "text": "Hello"}]


@pytest.mark.parametrize("name", ["echo", "data", "ask", "steps"])
def test_card(alice: Caller, name: str) -> None:
    """Marketplace: found by its card, then called."""
    card = alice.client.get(f"{alice.web.agent_url(name)}/.well-known/agent-card.json").json()
    assert {"name", "description", "version", "capabilities", "skills"} <= card.keys()
    assert card["capabilities"]["streaming"] is True
    assert {"id", "name", "tags"} <= card["skills"][0].keys()
    (url,) = {one["url"] for one in card["supportedInterfaces"] if one["protocolBinding"] == "JSONRPC"}
    response = alice.client.post(url, content=NEW, headers=HEADERS | {"Authorization": f"Bearer {alice.key}"})
    assert "task" in response.json()["result"]


def test_the_agent_at_the_host_root(alice: Caller) -> None:
    """`GET /.well-known/agent-card.json` and `POST /a2a`, as the document has them."""
    card = alice.client.get(f"{alice.web.url}/.well-known/agent-card.json").json()
    assert card["name"] == "order-agent"
    response = post(alice, "/a2a", NEW, HEADERS)
    task = response.json()["result"]["task"]
    assert (response.status_code, task["status"]["state"]) == (200, "TASK_STATE_COMPLETED")
    assert alice.jsonrpc("order-agent").get(task["id"])["contextId"] == "session-123"


# What is not recognisably a draft is read as 1.0, and what is wrong in a draft is named as the draft has it.


@pytest.mark.case("W01")
@pytest.mark.parametrize(
    "parts",
    ['[{"text":"a"}]', '[{"text":"a","type":"note"}]', '[{"text":"a","type":1}]', '[{"data":{"type":"text"}}]'],
)
@pytest.mark.parametrize("beside", ["", ',"sessionId":null', ',"session":"s"'])
def test_others_need_a_message_id(alice: Caller, parts: str, beside: str) -> None:
    with alice.nothing_stored():
        reply = send(alice, "data", rpc(f'{{"message":{{"role":"ROLE_USER","parts":{parts}}}{beside}}}'))
    assert (error_of(reply), fields_of(reply)) == ((-32602, None), [("message.messageId", "is required")])


TEXT = '[{"text":"a"}]'
NO_CONTENT = "must have one of text, raw, url, data"


@pytest.mark.parametrize(
    ("parts", "message", "beside", "field", "description"),
    [
        ('[{"type":"file"}]', "", "", "message.parts[0]", NO_CONTENT),
        ('[{"type":"text"}]', "", "", "message.parts[0]", NO_CONTENT),
        ('[{"type":"file","file":"x"}]', "", "", "message.parts[0].file", "must be an object"),
        ('[{"type":"file","file":{}}]', "", "", "message.parts[0].file", "must have one of bytes, uri"),
        (
            '[{"type":"file","file":{"uri":"u","bytes":"AA=="}}]',
            *("", "", "message.parts[0].file", "must have only one of bytes, uri"),
        ),
        ('[{"type":"file","file":{"bytes":"!"}}]', "", "", "message.parts[0].file.bytes", "must be base64"),
        ('[{"type":"file","file":{"uri":5}}]', "", "", "message.parts[0].file.uri", "must be a string"),
        ('[{"type":"text","text":"a","type":"text"}]', "", "", "message.parts[0].type", "is given more than once"),
        (TEXT, "", ',"sessionId":5', "sessionId", "must be a string"),
        (TEXT, "", ',"taskId":{}', "taskId", "must be a string"),
        ("[]", "", ',"taskId":"t"', "message.parts", "must have at least one element"),
        (TEXT, ',"taskId":"a"', ',"taskId":"b"', "taskId", "differs from message.taskId"),
        (TEXT, ',"contextId":"a"', ',"sessionId":"b"', "sessionId", "differs from message.contextId"),
        (TEXT, "", ',"sessionId":"a","sessionId":"b"', "sessionId", "is given more than once"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_sent(
    alice: Caller, parts: str, message: str, beside: str, field: str, description: str
) -> None:
    with alice.nothing_stored():
        reply = send(alice, "data", rpc(f'{{"message":{{"role":"ROLE_USER","parts":{parts}{message}}}{beside}}}'))
    assert (error_of(reply)[0], fields_of(reply)) == (-32602, [(field, description)])


@pytest.mark.case("W13")
def test_a_role_of_another_version(alice: Caller) -> None:
    with alice.nothing_stored():
        reply = send(alice, "echo", NEW.replace("ROLE_USER", "user"))
    assert fields_of(reply) == [("message.role", 'must be one of ROLE_USER, ROLE_AGENT, got "user"')]


def test_a_type_beside_the_members_of_1_0_means_what_it_says(alice: Caller) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "file", "url": "https://f.test/", "mediaType": "image/png"}]
    params = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": parts, "contextId": "c", "taskId": ""}}
    task = send(alice, "data", rpc(json.dumps(params | {"sessionId": "c"})))["result"]["task"]
    assert alice.jsonrpc("data").get(task["id"])["artifacts"][0]["parts"] == [
        {"text": "a"},
        {"url": "https://f.test/", "mediaType": "image/png"},
    ]


# The codes of the document, in the details of the error that 1.0 has.


def test_the_error_codes_of_the_standard(alice: Caller) -> None:
    for body, code in (
        ("{", -32700),
        ('{"jsonrpc":"2.0","id":"req-001"}', -32600),
        (rpc("{}", "Nope"), -32601),
        (rpc("{}"), -32602),
    ):
        response = post(alice, "/agents/echo", body, HEADERS)
        assert error_of(response.json()) == (code, None)


def legacy_code(response: httpx.Response) -> str | None:
    error = response.json()["error"]
    found: str | None = (error.get("data") or error["details"])[0]["metadata"].get("legacyCode")
    return found


def test_agent_not_found(alice: Caller) -> None:
    response = post(alice, "/agents/nobody", NEW, HEADERS)
    assert (response.status_code, legacy_code(response)) == (404, "-32100")


def test_task_not_found(alice: Caller) -> None:
    reply = send(alice, "echo", rpc('{"id":"task-001"}', "GetTask"))
    assert error_of(reply) == (-32001, "-32102")
    assert legacy_code(alice.rest("echo").ask("GET", "/tasks/none")) == "-32102"


def test_task_canceled(alice: Caller) -> None:
    """Of the tasks that take no more messages and no cancellation, those that were canceled."""
    hold = alice.jsonrpc("hold")
    task = hold.start()["id"]
    hold.cancel(task)
    cancel = rpc(f'{{"id":"{task}"}}', "CancelTask")
    assert error_of(send(alice, "hold", cancel)) == (-32002, "-32104")
    follow_up = SEND.replace("optional-existing-task-id", task).replace(',\n    "sessionId": "session-123"', "")
    assert error_of(send(alice, "hold", follow_up)) == (-32004, "-32104")
    assert error_of(send(alice, "hold", rpc(f'{{"id":"{task}"}}', "SubscribeToTask"))) == (-32004, "-32104")
    done = send(alice, "echo", NEW)["result"]["task"]["id"]
    assert error_of(send(alice, "echo", rpc(f'{{"id":"{done}"}}', "CancelTask"))) == (-32002, None)


def test_capability_not_supported(alice: Caller) -> None:
    assert error_of(send(alice, "quiet", STREAM)) == (-32004, "-32105")


@pytest.mark.parametrize("slug", ["order-agent", "echo"])
def test_authentication_failed(alice: Caller, slug: str) -> None:
    """An agent behind a gate, and a wrong key at an open one."""
    headers = HEADERS | {"Authorization": "Bearer wrong"}
    with alice.nothing_stored():
        response = alice.client.post(alice.web.agent_url(slug), content=NEW, headers=headers)
    assert (response.status_code, legacy_code(response)) == (401, "-32106")


def test_an_agent_behind_the_gate(alice: Caller) -> None:
    assert send(alice, "order-agent", NEW)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
