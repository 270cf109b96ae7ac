"""A travel agent asks a weather agent, in 0.3: text and data parts, and the shortest exchange with a typed part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.seeds.executors import FORECAST
from tests.seeds.reading import post, stream
from tests.support.callers import Caller

JSON = {"Content-Type": "application/json"}
BOTH = JSON | {"Accept": "application/json"}
FORECAST_REQUEST = """{
  "jsonrpc": "2.0",
  "id": 1,
  "method": "message/send",
  "params": {
    "message": {
      "role": "user",
      "parts": [
        {
          "kind": "text",
          "text": "提供天气预报。"
        },
        {
          "kind": "data",
          "data": {
            "location": "巴黎",
            "dates": {
              "start": "2023-10-01",
              "end": "2023-10-07"
            }
          }
        }
      ],
      "messageId": "msg-001"
    }
  }
}"""
SHORTEST = """{
  "jsonrpc": "2.0",
  "method": "message/send",
  "id": 1,
  "params": {
    "message": {
      "role": "user",
      "parts": [{ "type": "text", "text": "总结Q2董事会演示文稿" }]
    }
  }
}"""


def card_of(caller: Caller, slug: str) -> Any:
    response = caller.client.get(f"{caller.web.agent_url(slug)}/.well-known/agent.json")
    assert response.status_code == 200
    return response.json()


def send(caller: Caller, slug: str, body: str) -> Any:
    response = post(caller, f"/agents/{slug}", body, BOTH)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json"), response.text
    return response.json()


def test_discovery(alice: Caller) -> None:
    card = card_of(alice, "weather")
    assert (card["name"], card["url"]) == ("天气预报智能体", alice.web.agent_url("weather"))
    capabilities = card["capabilities"]
    assert (capabilities["streaming"], capabilities["pushNotifications"]) == (True, True)
    assert (card["defaultInputModes"], card["defaultOutputModes"]) == (["text/plain"], ["application/json"])


@pytest.mark.parametrize("path", ["", "/a2a/v1"])
def test_forecast(alice: Caller, path: str) -> None:
    """At the address of the card, and at the path that the document shows below it."""
    url = card_of(alice, "weather")["url"]
    response = alice.client.post(url + path, content=FORECAST_REQUEST, headers=JSON)
    reply = response.json()
    assert (response.status_code, reply["jsonrpc"], reply["id"]) == (200, "2.0", 1)
    task = reply["result"]
    assert task["kind"] == "task"
    assert {"id", "contextId", "status", "artifacts"} <= task.keys()
    assert task["status"]["state"] == "completed"
    (artifact,) = task["artifacts"]
    assert artifact == {"artifactId": "art-001", "parts": [{"kind": "data", "data": {"forecast": FORECAST}}]}
    assert "taskId" not in task


def test_a_part_may_have_a_type_for_its_kind(alice: Caller) -> None:
    body = FORECAST_REQUEST.replace('"kind"', '"type"').replace("msg-001", "msg-002")
    task = send(alice, "weather", body)["result"]
    assert task["artifacts"][0]["parts"] == [{"type": "data", "kind": "data", "data": {"forecast": FORECAST}}]
    assert task["history"][0]["messageId"] == "msg-002"
    with alice.nothing_stored():
        assert send(alice, "weather", body)["result"]["id"] == task["id"]  # the same messageId: a retry


def test_the_shortest_exchange(alice: Caller) -> None:
    """No messageId, and the reply has a `taskId` beside what 0.3 has."""
    reply = send(alice, "echo", SHORTEST)
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", 1)
    task = reply["result"]
    assert (task["kind"], task["taskId"], task["status"]["state"]) == ("task", task["id"], "completed")
    part = {"type": "text", "kind": "text", "text": "总结Q2董事会演示文稿"}
    assert task["artifacts"][0]["parts"] == task["history"][0]["parts"] == [part]
    get = f'{{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{{"id":"{task["taskId"]}"}}}}'
    found = send(alice, "echo", get)["result"]
    assert found["artifacts"][0]["parts"] == [{"kind": "text", "text": "总结Q2董事会演示文稿"}]
    assert alice.jsonrpc("echo").get(task["taskId"])["status"]["state"] == "TASK_STATE_COMPLETED"


def test_the_shortest_exchange_as_a_stream(alice: Caller) -> None:
    found = stream(alice, "/agents/echo", SHORTEST.replace("message/send", "message/stream"), JSON)
    results = [data["result"] for _, data in found]
    assert [result["kind"] for result in results] == ["task", "status-update", "artifact-update", "status-update"]
    part = {"type": "text", "kind": "text", "text": "总结Q2董事会演示文稿"}
    assert results[2]["artifact"]["parts"] == [part]
    assert results[3]["final"] is True


def test_a_file(alice: Caller) -> None:
    file = {"name": "a.pdf", "mimeType": "application/pdf", "bytes": "AAEC/w=="}
    parts = [{"type": "file", "file": file}, {"kind": "file", "type": "x", "file": {"uri": "https://f.test/"}}]
    body = json.loads(SHORTEST)
    body["params"]["message"]["parts"] = parts
    task = send(alice, "data", json.dumps(body))["result"]
    assert task["artifacts"][0]["parts"] == [
        {"type": "file", "kind": "file", "file": file},
        {"type": "file", "kind": "file", "file": {"uri": "https://f.test/"}},
    ]


def test_several_turns(alice: Caller) -> None:
    """A `taskId` beside the message, as drafts have it."""
    asked = send(alice, "ask", SHORTEST)["result"]
    assert asked["status"]["state"] == "input-required"
    body = json.loads(SHORTEST)
    body["params"] |= {"taskId": asked["taskId"], "sessionId": asked["contextId"]}
    answered = send(alice, "ask", json.dumps(body))["result"]
    assert (answered["id"], answered["status"]["state"]) == (asked["id"], "completed")


def test_what_is_no_draft_needs_a_message_id(alice: Caller) -> None:
    with alice.nothing_stored():
        reply = send(alice, "echo", SHORTEST.replace('"type"', '"kind"'))
    (violations,) = [d["fieldViolations"] for d in reply["error"]["data"] if "fieldViolations" in d]
    assert (reply["error"]["code"], violations[0]["field"]) == (-32602, "message.messageId")


def test_faults_are_named_as_they_were_sent(alice: Caller) -> None:
    asked = send(alice, "ask", SHORTEST)["result"]
    body = json.loads(SHORTEST)
    body["params"] |= {"taskId": asked["taskId"], "sessionId": "other"}
    with alice.nothing_stored():
        reply = send(alice, "ask", json.dumps(body))
    (violations,) = [d["fieldViolations"] for d in reply["error"]["data"] if "fieldViolations" in d]
    assert [v["field"] for v in violations] == ["sessionId"]
