"""The task REST dialect of a chapter on A2A: its requests, its documents and its client, at both bases.

At `/agents/<slug>` HTTP+JSON of 1.0 answers as well; `/a2a-tasks/<slug>` is for the dialect alone.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import httpx
import pytest

from tests.seeds.executors import REPORT
from tests.seeds.reading import events, keyed
from tests.seeds.task_client import A2AClient, A2ATaskError, AgentDiscovery
from tests.support.callers import Caller
from tests.support.deployment import Deployment, wait_until
from tests.support.push_configs import PushConfigs
from tests.support.receiver import Receiver

JSON = {"Content-Type": "application/json"}
PDF = base64.b64encode(b"%PDF-1.4").decode()
MESSAGE = """{
    "role": "user",
    "parts": [
      {
        "type": "text",
        "text": "请分析以下合同的合规风险，重点关注数据保护和知识产权条款"
      },
      {
        "type": "file",
        "file": {
          "name": "service_agreement.pdf",
          "mimeType": "application/pdf",
          "bytes": "JVBERi0xLjQ="
        }
      }
    ]
  }"""
CREATE = (
    """{
  "message": """
    + MESSAGE
    + """,
  "sessionId": "session-12345",
  "metadata": {
    "priority": "high",
    "deadline": "2025-01-15T10:00:00Z"
  }
}"""
)
KEPT = {"priority": "high", "deadline": "2025-01-15T10:00:00Z"}


@pytest.fixture(params=["/agents", "/a2a-tasks"])
def base(request: pytest.FixtureRequest) -> str:
    """Each base in turn."""
    base: str = request.param
    return base


class Tasks:
    """The dialect's requests for one agent."""

    def __init__(self, caller: Caller, base: str, slug: str) -> None:
        self.caller = caller
        self.url = f"{caller.web.url}{base}/{slug}"

    def ask(self, verb: str, path: str, body: str | None = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else body.encode("utf-8", "surrogatepass")
        all_headers = keyed(self.caller, JSON if body is not None else {}) | named
        return self.caller.client.request(verb, self.url + path, content=content, headers=all_headers)

    def json(self, verb: str, path: str, body: str | None = None, status: int = 200) -> Any:
        response = self.ask(verb, path, body)
        assert (response.status_code, response.headers["content-type"]) == (status, "application/json"), response.text
        return response.json()

    def create(self, body: str = CREATE) -> Any:
        return self.json("POST", "/tasks", body, 202)

    def get(self, id: str) -> Any:
        return self.json("GET", f"/tasks/{id}")

    def until(self, id: str, *states: str) -> Any:
        """The task once it is in one of the states."""
        wait_until(lambda: self.get(id)["status"]["state"] in states, f"the task to be {states}")
        return self.get(id)

    def stream(self, id: str) -> Iterator[Any]:
        url = f"{self.url}/tasks/{id}/stream"
        with self.caller.client.stream("GET", url, headers=keyed(self.caller, JSON)) as response:
            assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            yield from (data for _, data in events(response))


def text(said: str, **beside: Any) -> str:
    """A request with one text part."""
    message = {"role": "user", "parts": [{"type": "text", "text": said}]}
    return json.dumps({"message": message} | beside, ensure_ascii=False)


def details(response: httpx.Response) -> tuple[int, str, list[tuple[str, str]]]:
    """(status, reason, violations) of an error."""
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert error["code"] == response.status_code
    info, *more = error["details"]
    fields = [(v["field"], v["description"]) for one in more for v in one["fieldViolations"]]
    return response.status_code, info["reason"], fields


def test_create_get_and_artifacts(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "compliance")
    created = tasks.create()
    timestamp = created["status"].pop("timestamp")
    assert datetime.fromisoformat(timestamp).utcoffset() == timedelta(0)
    id = created["id"]
    created["metadata"].pop("estimated_completion", None)
    assert created == {
        "id": id,
        "sessionId": "session-12345",
        "status": {"state": "submitted", "progress": 0.0},
        "metadata": KEPT,
    }
    done = tasks.until(id, "completed")
    assert (done["id"], done["sessionId"], done["status"]["progress"]) == (id, "session-12345", 1.0)
    assert done["metadata"] == KEPT | {"progress": 0.45}
    artifact = {
        "artifactId": "report",
        "name": "compliance_report",
        "parts": [
            {"type": "text", "text": REPORT, "metadata": {"language": "zh-CN", "word_count": 2847}},
            {
                "type": "file",
                "file": {
                    "name": "compliance_report.pdf",
                    "mimeType": "application/pdf",
                    "bytes": base64.b64encode(b"%PDF-1.4\n").decode(),
                },
            },
        ],
        "metadata": {"confidence": 0.92},
    }
    assert done["artifacts"] == [artifact]
    assert tasks.json("GET", f"/tasks/{id}/artifacts") == [artifact]


def test_one_stored_task_in_every_binding(alice: Caller, base: str, deployment: Deployment) -> None:
    """What the dialect created, 1.0 reads in its own words; `priority` and `deadline` are the task's metadata."""
    tasks = Tasks(alice, base, "compliance")
    id = tasks.create()["id"]
    tasks.until(id, "completed")
    for peer in (alice.jsonrpc("compliance"), alice.rest("compliance")):
        task = peer.get(id)
        assert (task["contextId"], task["status"]["state"]) == ("session-12345", "TASK_STATE_COMPLETED")
        assert task["metadata"] == KEPT | {"progress": 0.45}
        (message,) = task["history"]
        assert message["parts"] == [
            {"text": "请分析以下合同的合规风险，重点关注数据保护和知识产权条款"},
            {"raw": PDF, "filename": "service_agreement.pdf", "mediaType": "application/pdf"},
        ]
        assert len(message["messageId"]) == 36
    assert deployment.query("SELECT dialect FROM tasks_app_task WHERE id = %s", [id]) == [("HTTP+JSON/tasks",)]


def test_what_1_0_created_is_read_in_the_dialect(alice: Caller) -> None:
    task = alice.jsonrpc("echo").say("hi", contextId="c")
    found = Tasks(alice, "/a2a-tasks", "echo").get(task["id"])
    timestamp = task["status"]["timestamp"]
    assert found == {
        "id": task["id"],
        "sessionId": "c",
        "status": {"state": "completed", "timestamp": timestamp, "progress": 1.0},
        "artifacts": [{"artifactId": f"{task['id']}.echo", "name": "echo", "parts": [{"type": "text", "text": "hi"}]}],
    }


def test_messages(alice: Caller, base: str) -> None:
    """Several turns: the answer goes to the same task, and everything that was said can be read."""
    tasks = Tasks(alice, base, "ask")
    id = tasks.create(text("book a table", sessionId="s", metadata=KEPT))["id"]
    asked = tasks.until(id, "input-required")
    assert asked["status"]["message"] == "What should I know before I go on?"
    said = tasks.json("GET", f"/tasks/{id}/messages")
    assert [(m["role"], m["parts"]) for m in said] == [
        ("user", [{"type": "text", "text": "book a table"}]),
        ("agent", [{"type": "text", "text": "What should I know before I go on?"}]),
    ]
    again = tasks.json("POST", f"/tasks/{id}/messages", text("for two", sessionId="s"), 202)
    assert (again["id"], again["status"]["state"], again["metadata"]["priority"]) == (id, "working", "high")
    done = tasks.until(id, "completed")
    assert done["artifacts"][0]["parts"] == [{"type": "text", "text": "for two"}]
    said = tasks.json("GET", f"/tasks/{id}/messages")
    assert [m["role"] for m in said] == ["user", "agent", "user"]


def test_a_message_alone_is_the_next_one(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "ask")
    id = tasks.create(text("book a table"))["id"]
    tasks.until(id, "input-required")
    message = '{"role":"user","parts":[{"type":"text","text":"for two"}],"messageId":"m-1","metadata":{"n":1}}'
    tasks.json("POST", f"/tasks/{id}/messages", message, 202)
    tasks.until(id, "completed")
    assert tasks.json("GET", f"/tasks/{id}/messages")[-1] == {
        "role": "user",
        "parts": [{"type": "text", "text": "for two"}],
        "messageId": "m-1",
        "metadata": {"n": 1},
    }


def test_cancel(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "hold")
    id = tasks.create(text("hold"))["id"]
    assert tasks.json("PUT", f"/tasks/{id}/cancel")["status"]["state"] == "canceled"
    with alice.nothing_stored():
        assert details(tasks.ask("PUT", f"/tasks/{id}/cancel"))[:2] == (400, "TASK_NOT_CANCELABLE")
    assert alice.jsonrpc("hold").get(id)["status"]["state"] == "TASK_STATE_CANCELED"


def test_stream(alice: Caller, base: str) -> None:
    """Events have a type and how far the task is, from 0 to 1."""
    tasks = Tasks(alice, base, "compliance")
    id = tasks.create(text("wait", sessionId="s"))["id"]
    stream = tasks.stream(id)
    found = [next(stream)]
    while found[-1]["status"]["progress"] != 0.45:
        found.append(next(stream))
    alice.jsonrpc("compliance").cancel(id)
    found += list(stream)
    assert {(event["id"], event["sessionId"]) for event in found} == {(id, "s")}
    assert all(event["type"] == event["status"]["state"] for event in found)
    assert found[0]["type"] in ("submitted", "working")
    assert [event["type"] for event in found[-2:]] == ["working", "canceled"]
    progress = [event["status"]["progress"] for event in found]
    assert sorted(progress) == progress
    assert progress[-2:] == [0.45, 0.45]


def test_stream_of_artifacts(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "steps")
    id = tasks.create(text("steps 3 300"))["id"]
    found = list(tasks.stream(id))
    artifacts = [event for event in found if event["type"] == "artifact"]
    assert [event["artifact"]["parts"] for event in artifacts] == [
        [{"type": "text", "text": f"chunk {n}\n"}] for n in (1, 2, 3)
    ]
    assert [event.get("append", False) for event in artifacts] == [False, True, True]
    assert [event.get("lastChunk", False) for event in artifacts] == [False, False, True]
    assert {event["status"]["state"] for event in artifacts} == {"working"}
    assert (found[-1]["type"], found[-1]["status"]["progress"]) == ("completed", 1.0)


def test_stream_of_a_task_that_has_ended(alice: Caller, base: str) -> None:
    """Clients subscribe after the start, and a quick agent is done by then."""
    tasks = Tasks(alice, base, "echo")
    id = tasks.create(text("hi"))["id"]
    done = tasks.until(id, "completed")
    assert list(tasks.stream(id)) == [{"type": "completed"} | done]


@pytest.mark.parametrize(("slug", "state"), [("boom", "failed"), ("reject", "failed"), ("auth", "auth-required")])
def test_states(alice: Caller, base: str, slug: str, state: str) -> None:
    """There is no word for a rejection: who polls for the end sees that it failed, and why."""
    tasks = Tasks(alice, base, slug)
    task = tasks.until(tasks.create(text("x"))["id"], state)
    said = {
        "boom": "The agent failed to process the message.",
        "reject": "I take no work.",
        "auth": "Authorize me, then send a message to go on.",
    }
    assert task["status"]["message"] == said[slug]


def test_a_message_as_the_answer_is_the_message_of_the_completed_task(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "direct")
    task = tasks.until(tasks.create(text("hi"))["id"], "completed")
    assert task["status"]["message"] == "hi"


def test_callback_url(alice: Caller, base: str, receiver: Receiver, worker: object) -> None:
    """A push config of the task: its webhook is told of each event with the task."""
    path = f"/a2a/callbacks{base}"
    tasks = Tasks(alice, base, "compliance")
    metadata = {"priority": "high", "callback_url": receiver.url(path)}
    id = tasks.create(text("请分析", sessionId="s", metadata=metadata))["id"]
    done = tasks.until(id, "completed")
    assert done["metadata"] == {"priority": "high", "progress": 0.45}
    (config,) = PushConfigs(alice.jsonrpc("compliance")).list(id)["configs"]
    assert (config["taskId"], config["url"]) == (id, receiver.url(path))

    def told() -> list[Any]:
        found = [delivery.json for delivery in receiver.deliveries(path)]
        return found if found and found[-1]["type"] == "completed" else []

    found = wait_until(told, "the last event")
    assert found[-1] == {"type": "completed"} | done
    assert [one["id"] for one in found] == [id] * len(found)
    assert [one["type"] for one in found[:-1]] == ["working"] * (len(found) - 1)
    assert {delivery.headers["content-type"] for delivery in receiver.deliveries(path)} == {"application/json"}


def test_a_callback_that_may_not_be_called(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "compliance")
    for url in ("http://127.0.0.1:1/", "ftp://example.com/", "nothing"):
        with alice.nothing_stored():
            response = tasks.ask("POST", "/tasks", text("x", metadata={"callback_url": url}))
        status, reason, fields = details(response)
        assert (status, reason, [field for field, _ in fields]) == (400, "INVALID_PARAMS", ["metadata.callback_url"])
    with alice.nothing_stored():
        response = Tasks(alice, base, "order-agent").ask("POST", "/tasks", text("x", metadata={"callback_url": url}))
    assert details(response)[:2] == (400, "PUSH_NOTIFICATION_NOT_SUPPORTED")


def test_estimated_completion(alice: Caller, base: str) -> None:
    """From the agent's own tasks; absent as long as it has completed none."""
    tasks = Tasks(alice, base, "translation")
    for _ in range(3):
        tasks.until(tasks.create(text("hi"))["id"], "completed")
    created = tasks.create(text("hi"))
    estimate = datetime.fromisoformat(created["metadata"]["estimated_completion"])
    begun = datetime.fromisoformat(created["status"]["timestamp"])
    assert timedelta(0) <= estimate - begun < timedelta(seconds=30)
    done = tasks.until(created["id"], "completed")
    assert "estimated_completion" not in done.get("metadata", {})
    assert "estimated_completion" not in Tasks(alice, base, "hold").create(text("hold")).get("metadata", {})


# The client of the chapter, and its two agents at once.


def test_the_client_polls(alice: Caller, base: str) -> None:
    async def use() -> None:
        client = A2AClient(f"{alice.web.url}{base}/compliance/", str(alice.key))
        files = [{"name": "contract.pdf", "mimeType": "application/pdf", "bytes": PDF}]
        task = await client.create_task("请分析", files=files, session_id="session-12345")
        done = await client.wait_for_completion(task["id"], poll_interval=0.05, timeout=20)
        assert done["artifacts"][0]["parts"][0]["text"] == REPORT
        task = await client.create_task("wait")
        await client.cancel_task(task["id"])
        with pytest.raises(A2ATaskError, match="任务被取消"):
            await client.wait_for_completion(task["id"], poll_interval=0.05, timeout=20)

    asyncio.run(use())


def test_the_client_learns_why_a_task_failed(alice: Caller, base: str) -> None:
    async def use() -> None:
        client = A2AClient(f"{alice.web.url}{base}/boom", str(alice.key))
        task = await client.create_task("x")
        with pytest.raises(A2ATaskError) as failure:
            await client.wait_for_completion(task["id"], poll_interval=0.05, timeout=20)
        assert failure.value.detail == "The agent failed to process the message."

    asyncio.run(use())


def test_two_agents_at_once_with_streams(alice: Caller, base: str) -> None:
    async def wait_with_streaming(client: A2AClient, task_id: str) -> dict[str, Any]:
        async for event in client.stream_task_progress(task_id):
            state = event.get("status", {}).get("state", "")
            assert 0 <= event.get("status", {}).get("progress", 0) <= 1
            if state == "completed":
                return await client.get_task(task_id)
            assert state != "failed"
        raise AssertionError("the stream ended")

    def extract_text_from_artifacts(task_result: dict[str, Any]) -> str:
        for artifact in task_result.get("artifacts", []):
            for part in artifact.get("parts", []):
                if part["type"] == "text":
                    return str(part["text"])
        return ""

    async def analyze_contract_with_collaboration() -> list[str]:
        clients = [A2AClient(f"{alice.web.url}{base}/{slug}", str(alice.key)) for slug in ("compliance", "translation")]
        tasks = await asyncio.gather(*(client.create_task("SERVICE AGREEMENT") for client in clients))
        ids = [task["id"] for task in tasks]
        results = await asyncio.gather(*itertools.starmap(wait_with_streaming, zip(clients, ids, strict=True)))
        return [extract_text_from_artifacts(result) for result in results]

    assert asyncio.run(analyze_contract_with_collaboration()) == [REPORT, "服务协议"]


def test_the_agent_at_the_host_root(alice: Caller) -> None:
    """Where the client's agents are in the chapter."""

    async def use() -> None:
        client = A2AClient(alice.web.url, str(alice.key))
        task = await client.create_task("查询订单 123", session_id="session-12345")
        events = [event async for event in client.stream_task_progress(task["id"])]
        assert (events[-1]["type"], events[-1]["sessionId"]) == ("completed", "session-12345")
        done = await client.wait_for_completion(task["id"], poll_interval=0.05, timeout=20)
        assert done["artifacts"] == await client.get_artifacts(task["id"])
        with pytest.raises(aiohttp.ClientResponseError) as error:
            await client.cancel_task(task["id"])
        assert error.value.status == 400

    asyncio.run(use())


def test_discovery(alice: Caller) -> None:
    """`/.well-known/agent.json` below the base that a client was given, and the address in it."""
    url = f"{alice.web.url}/a2a-tasks/compliance"
    card = alice.client.get(f"{url}/.well-known/agent.json").json()
    assert (card["name"], card["url"]) == ("Compliance", url)
    assert (card["capabilities"]["streaming"], card["authentication"]) == (True, {"schemes": ["bearer"]})
    assert {"name", "description", "tags"} <= card["skills"][0].keys()
    assert alice.client.head(f"{url}/.well-known/agent.json").status_code == 200
    response = alice.client.post(f"{url}/.well-known/agent.json")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_the_discovery_of_the_client(alice: Caller, base: str) -> None:
    async def use() -> None:
        discovery = AgentDiscovery()
        url = f"{alice.web.url}{base}/order-agent"
        card = await discovery.discover(url)
        assert card is not None
        assert card["skills"][0]["id"] == "order-status"
        assert discovery.can_handle(card, "查询 order 123") > discovery.can_handle(card, "天气")
        assert await discovery.discover(url) is card
        assert await discovery.discover(f"{alice.web.url}{base}/nobody") is None

    asyncio.run(use())


# Side by side with 1.0 at the agent's URL.


def test_a_version_or_the_media_type_says_1_0(alice: Caller) -> None:
    tasks = Tasks(alice, "/agents", "echo")
    id = tasks.create(text("hi"))["id"]
    tasks.until(id, "completed")
    for headers in ({"a2a_version": "1.0"}, {"accept": "application/a2a+json"}):
        task = tasks.ask("GET", f"/tasks/{id}", **headers).json()
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        with alice.nothing_stored():
            response = tasks.ask("POST", "/tasks", text("hi"), **headers)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert tasks.ask("GET", f"/tasks/{id}?A2A-Version=1.0").json()["status"]["state"] == "TASK_STATE_COMPLETED"
    assert tasks.ask("GET", "/tasks").json()["totalSize"] == 1


def test_a_task_of_1_0_stays_one_without_a_version(alice: Caller) -> None:
    task = alice.jsonrpc("echo").say("hi")
    assert Tasks(alice, "/agents", "echo").ask("GET", f"/tasks/{task['id']}").json() == task


def test_the_paths_of_the_dialect_are_no_1_0(alice: Caller) -> None:
    """Whatever the version: they are not among those of 1.0."""
    task = alice.jsonrpc("echo").say("hi")["id"]
    tasks = Tasks(alice, "/agents", "echo")
    for headers in ({}, {"a2a_version": "1.0"}):
        assert tasks.ask("GET", f"/tasks/{task}/artifacts", **headers).json()[0]["name"] == "echo"


# Access, limits and errors are those of every binding.


def test_nothing_is_seen_of_others(alice: Caller, bob: Caller, base: str) -> None:
    id = Tasks(alice, base, "ask").create(text("book a table"))["id"]
    Tasks(alice, base, "ask").until(id, "input-required")
    with alice.nothing_stored(), bob.nothing_stored():
        tasks = Tasks(bob, base, "ask")
        for verb, path, body in (
            ("GET", "/artifacts", None),
            ("GET", "/messages", None),
            ("POST", "/messages", text("for two")),
            ("PUT", "/cancel", None),
            ("GET", "/stream", None),
        ):
            for task in (id, "0199c8f0-0000-7000-8000-000000000001", "none"):
                assert details(tasks.ask(verb, f"/tasks/{task}{path}", body))[:2] == (404, "TASK_NOT_FOUND")
            fault = details(tasks.ask(verb, f"/tasks/%00{path}", body))
            assert fault == (400, "INVALID_PARAMS", [("id", "must not hold U+0000")])
        assert tasks.ask("GET", f"/tasks/{id}").status_code == 404
    assert Tasks(alice, base, "ask").get(id)["status"]["state"] == "input-required"


def test_a_key_is_needed(alice: Caller, base: str) -> None:
    url = f"{alice.web.url}{base}/compliance"
    for verb, path in (
        ("POST", "/tasks"),
        ("GET", "/tasks/x"),
        ("GET", "/tasks/x/stream"),
        ("PUT", "/tasks/x/cancel"),
        ("POST", "/tasks/x/messages"),
    ):
        response = alice.client.request(verb, url + path, content=CREATE if verb == "POST" else None, headers=JSON)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == 'Bearer realm="a2a-host"'
        assert response.json()["error"]["details"][0]["metadata"]["legacyCode"] == "-32106"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ("{}", [("message", "is required")]),
        ("[]", [("", "must be an object")]),
        ('{"message":"hi"}', [("message", "must be an object")]),
        (
            '{"message":{"role":"agent","parts":[{"type":"text","text":"a"}]}}',
            [("message.role", "must be user")],
        ),
        ('{"message":{"role":"user"}}', [("message.parts", "is required")]),
        ('{"message":{"role":"user","parts":[]}}', [("message.parts", "must have at least one element")]),
        ('{"message":{"parts":[{"type":"text","text":"a"}]}}', [("message.role", "is required")]),
        (
            '{"message":{"role":"user","parts":[{"type":"file","file":{"bytes":"!"}}]}}',
            [("message.parts[0].file.bytes", "must be base64")],
        ),
        (text("a", sessionId=5), [("sessionId", "must be a string")]),
        (text("a", metadata=5), [("metadata", "must be an object")]),
        (text("a", metadata={"callback_url": 5}), [("metadata.callback_url", "must be a string")]),
        (text("a", metadata={"callback_url": ""}), [("metadata.callback_url", "is required")]),
        (text("a")[:-1] + ',"sessionId":"a","sessionId":"b"}', [("sessionId", "is given more than once")]),
        (
            text("a")[:-1] + ',"metadata":{"callback_url":"a","callback_url":"b"}}',
            [("metadata.callback_url", "is given more than once")],
        ),
    ],
)
def test_what_is_wrong_is_named_as_it_was_sent(
    alice: Caller, base: str, body: str, fields: list[tuple[str, str]]
) -> None:
    with alice.nothing_stored():
        response = Tasks(alice, base, "data").ask("POST", "/tasks", body)
    assert details(response) == (400, "INVALID_PARAMS", fields)


def test_a_wrong_next_message_is_named_as_it_was_sent(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "ask")
    id = tasks.create(text("book a table"))["id"]
    tasks.until(id, "input-required")
    with alice.nothing_stored():
        for body, field in (
            ('{"role":"user","parts":5}', "parts"),
            ('{"message":{"role":"user","parts":5}}', "message.parts"),
        ):
            assert details(tasks.ask("POST", f"/tasks/{id}/messages", body))[2] == [(field, "must be an array")]
        wrong = text("for two", sessionId="other")
        assert details(tasks.ask("POST", f"/tasks/{id}/messages", wrong))[:2] == (400, "INVALID_PARAMS")


@pytest.mark.parametrize(
    ("body", "headers", "error"),
    [
        ("{", {}, (400, "PARSE_ERROR", [])),
        ('{"message":' + "[" * 200 + "]" * 200 + "}", {}, (400, "PARSE_ERROR", [])),
        (CREATE, {"content_type": "text/plain"}, (415, "UNSUPPORTED_MEDIA_TYPE", [])),
        (CREATE, {"content_length": "99999999"}, (413, "REQUEST_TOO_LARGE", [])),
    ],
)
def test_other_faults(
    alice: Caller, base: str, body: str, headers: dict[str, str], error: tuple[int, str, list[Any]]
) -> None:
    if "content_length" in headers:
        body, headers = text("x" * 9_000_000), {}
    with alice.nothing_stored():
        response = Tasks(alice, base, "data").ask("POST", "/tasks", body, **headers)
    assert details(response) == error


def test_an_agent_that_takes_no_file(alice: Caller, base: str) -> None:
    with alice.nothing_stored():
        response = Tasks(alice, base, "echo").ask("POST", "/tasks", CREATE)
    assert details(response)[:2] == (400, "CONTENT_TYPE_NOT_SUPPORTED")


def test_an_agent_that_does_not_stream(alice: Caller, base: str) -> None:
    tasks = Tasks(alice, base, "quiet")
    id = tasks.create(text("steps 1 1"))["id"]
    assert details(tasks.ask("GET", f"/tasks/{id}/stream"))[:2] == (400, "UNSUPPORTED_OPERATION")
    tasks.until(id, "completed")
    assert details(tasks.ask("GET", f"/tasks/{id}/stream"))[:2] == (400, "UNSUPPORTED_OPERATION")


@pytest.mark.parametrize(
    ("verb", "path", "status", "allow"),
    [
        ("DELETE", "/tasks/x/cancel", 405, "PUT, OPTIONS"),
        ("POST", "/tasks/x/artifacts", 405, "GET, HEAD, OPTIONS"),
        ("PUT", "/tasks/x/messages", 405, "GET, HEAD, POST, OPTIONS"),
        ("HEAD", "/tasks/x/stream", 405, "GET, OPTIONS"),
    ],
)
def test_what_is_not_allowed(alice: Caller, base: str, verb: str, path: str, status: int, allow: str) -> None:
    response = Tasks(alice, base, "echo").ask(verb, path)
    assert (response.status_code, response.headers["allow"]) == (status, allow)


def test_nothing_else_is_below_the_base(alice: Caller) -> None:
    tasks = Tasks(alice, "/a2a-tasks", "echo")
    for path in ("", "/", "/message:send", "/tasks/", "/tasks//cancel", "/tasks/x/nope", "/tasks/x:cancel", "/nope"):
        assert details(tasks.ask("GET", path))[:2] in ((404, "NOT_FOUND"), (404, "TASK_NOT_FOUND")), path
    assert details(Tasks(alice, "/a2a-tasks", "nobody").ask("GET", "/tasks/x"))[:2] == (404, "AGENT_NOT_FOUND")
    assert details(tasks.ask("GET", "/tasks"))[:2] == (405, "METHOD_NOT_ALLOWED")
    assert tasks.ask("OPTIONS", "/tasks").status_code == 204
