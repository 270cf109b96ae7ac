"""Calls and streams on one connection: told apart by id, and the same as in the other bindings."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

import pytest

from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web
from tests.support.peers import message
from tests.support.refusals import Refused
from tests.websocket.conftest import EXTENSION, eventually
from tests.websocket.line import open_line, refusal, saying, state

pytestmark = [pytest.mark.spec("12"), pytest.mark.timeout(60)]


async def test_every_operation_and_the_other_bindings_see_the_same(alice: Caller) -> None:
    async with open_line(alice, "hold") as line:
        task = (await line.call(1, "SendMessage", saying(configuration={"returnImmediately": True})))["task"]
        await eventually(lambda: state(alice.rest("hold").get(task["id"])) == "WORKING", "work")
        assert await line.call(2, "GetTask", {"id": task["id"]}) == alice.jsonrpc("hold").get(task["id"])
        assert await line.call(3, "ListTasks", {}) == alice.rest("hold").list()
        await line.ask(4, "SubscribeToTask", {"id": task["id"]})
        assert state(await line.result(4)) == "WORKING"
        assert state(await line.call(5, "CancelTask", {"id": task["id"]})) == "CANCELED"
        assert [state(item) for item in await line.rest(4)] == ["CANCELED"]
        for method in ("CreateTaskPushNotificationConfig", "GetExtendedAgentCard", "SendMessage"):
            with pytest.raises(Refused) as here:
                await line.call(6, method, {"id": task["id"]})
            with pytest.raises(Refused) as there:
                alice.jsonrpc("hold").call(method, {"id": task["id"]})
            assert (here.value.code, here.value.reason) == (there.value.code, there.value.reason)
            assert (here.value.fields, here.value.metadata) == (there.value.fields, there.value.metadata)
        await line.nothing_more()


async def test_a_stream_tells_what_it_tells_over_http(alice: Caller) -> None:
    async with open_line(alice, "steps") as line:
        await line.ask("s", "SendStreamingMessage", saying("steps 3 1"))
        items = await line.rest("s")
        task = items[0]["task"]["id"]
        assert [next(iter(item)) for item in items] == [
            "task",
            "statusUpdate",
            "artifactUpdate",
            "artifactUpdate",
            "artifactUpdate",
            "statusUpdate",
        ]
        assert state(items[-1]) == "COMPLETED"
        assert await line.call("g", "GetTask", {"id": task}) == alice.rest("steps").get(task)
        await line.nothing_more()


async def test_many_calls_and_streams_at_once(alice: Caller) -> None:
    async with open_line(alice, "steps") as line:
        streams, sends = range(30), [f"send {number}" for number in range(30)]
        for number in streams:
            await line.ask(number, "SendStreamingMessage", saying(f"steps {number + 1} 1"))
        for id in sends:
            await line.ask(id, "SendMessage", saying("steps 1 1"))
        for id in reversed(sends):
            assert state((await line.result(id))["task"]) == "COMPLETED"
        for number in reversed(streams):
            items = await line.rest(number)
            chunks = [item["artifactUpdate"]["artifact"]["parts"] for item in items if "artifactUpdate" in item]
            texts = [part["text"] for parts in chunks for part in parts]
            assert texts == [f"chunk {step}\n" for step in range(1, number + 2)]
        await line.nothing_more()
    assert len(alice.stored()[0]) == 60


async def test_a_call_that_waits_holds_nothing_up(alice: Caller) -> None:
    async with open_line(alice, "hold") as line:
        await line.ask("slow", "SendMessage", saying("hold"))
        await eventually(lambda: alice.rest("hold").list()["tasks"], "the task")
        (task,) = (await line.call("list", "ListTasks"))["tasks"]
        assert state(await line.call("quick", "CancelTask", {"id": task["id"]})) == "CANCELED"
        assert state((await line.result("slow"))["task"]) == "CANCELED"


@pytest.mark.parametrize("first", ['"a"', "7", "null", "-1", '"\\u00e9"'])
async def test_an_id_that_is_in_use_is_refused_until_its_call_has_ended(alice: Caller, first: str) -> None:
    id = json.loads(first)
    async with open_line(alice, "hold") as line:
        await line.connection.send(raw(first, "SendStreamingMessage", saying("hold")))
        task = (await line.result(id))["task"]["id"]
        assert state(await line.result(id)) == "WORKING"
        with alice.nothing_stored():
            for spelling in {first, json.dumps(id, ensure_ascii=False)}:
                await line.connection.send(raw(spelling, "SendMessage", saying()))
                error = json.loads(await line.connection.recv())
                assert (error["id"], error["error"]["code"]) == (None, -32600)
        await line.call("other", "CancelTask", {"id": task})
        assert state((await line.rest(id))[-1]) == "CANCELED"
        await line.connection.send(raw(first, "GetTask", {"id": task}))
        assert state(await line.result(id)) == "CANCELED"


def raw(id: str, method: str, params: Any) -> str:
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{json.dumps(params)}}}'


async def test_one_and_its_text_are_two_ids(alice: Caller) -> None:
    async with open_line(alice, "hold") as line:
        await line.ask(1, "SendMessage", saying("hold 1"))
        with pytest.raises(Refused):
            await line.call("1", "GetTask", {"id": "none"})
        assert state((await line.result(1))["task"]) == "COMPLETED"


@pytest.mark.parametrize(
    ("text", "id", "code"),
    [
        ("", None, -32700),
        ('{"jsonrpc":"2.0","id":4,"method":', None, -32700),
        ("[]", None, -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"ListTasks"}]', None, -32600),
        ('{"jsonrpc":"1.0","id":4,"method":"ListTasks"}', 4, -32600),
        ('{"jsonrpc":"2.0","id":1.5,"method":"ListTasks"}', None, -32600),
        ('{"jsonrpc":"2.0","id":4,"method":"Nope"}', 4, -32601),
        ('{"jsonrpc":"2.0","id":4,"method":"GetTask"}', 4, -32602),
        ('{"jsonrpc":"2.0","id":4,"method":"GetTask","params":{"id":"none"}}', 4, -32001),
        ('{"jsonrpc":"2.0","id":4,"method":"GetTask","params":{"id":"none","tenant":"steps"}}', 4, -32000),
        ('{"jsonrpc":"2.0","id":4,"method":"SendMessage","params":' + "[" * 200 + "]" * 200 + "}", None, -32700),
    ],
)
async def test_errors_are_those_of_json_rpc_and_end_nothing(
    alice: Caller, text: str, id: int | None, code: int
) -> None:
    async with open_line(alice, "echo") as line:
        with alice.nothing_stored():
            await line.connection.send(text)
            reply = await line.reply(id)
        assert refusal(reply, id).code == code
        assert state((await line.call("next", "SendMessage", saying()))["task"]) == "COMPLETED"


async def test_a_request_without_an_id_is_done_and_not_answered(alice: Caller) -> None:
    async with open_line(alice, "echo") as line:
        for params in (saying("quiet"), {"message": {}}, {}):
            await line.connection.send(json.dumps({"jsonrpc": "2.0", "method": "SendMessage", "params": params}))
        notification = {"jsonrpc": "2.0", "method": "SendStreamingMessage", "params": saying("quiet too")}
        await line.connection.send(json.dumps(notification))
        await line.nothing_more()
    await eventually(lambda: len(alice.stored()[0]) == 2, "the tasks")


@pytest.mark.spec("3.6")
@pytest.mark.parametrize(
    ("headers", "query", "reason"),
    [
        ({}, "", "TASK_NOT_FOUND"),
        ({"A2A-Version": "1.0.3"}, "", "TASK_NOT_FOUND"),
        ({}, "?A2A-Version=1.0", "TASK_NOT_FOUND"),
        ({"A2A-Version": "99.0"}, "", "VERSION_NOT_SUPPORTED"),
        ({}, "?a2a-version=99.0", "VERSION_NOT_SUPPORTED"),
        ({"A2A-Version": "1.0"}, "?A2A-Version=99.0", "TASK_NOT_FOUND"),
    ],
)
async def test_the_version_is_that_of_the_upgrade(
    alice: Caller, headers: dict[str, str], query: str, reason: str
) -> None:
    named = {"authorization": alice.headers["authorization"]} | headers
    async with open_line(alice, "echo", query, additional_headers=named) as line:
        with pytest.raises(Refused) as refused:
            await line.call(1, "GetTask", {"id": "none"})
    assert refused.value.reason == reason


async def test_a_client_that_goes_ends_its_streams_and_no_task(alice: Caller) -> None:
    async with open_line(alice, "hold") as line:
        await line.ask(1, "SendStreamingMessage", saying("hold 2"))
        streamed = (await line.result(1))["task"]["id"]
        await line.ask(2, "SendMessage", saying("hold 2"))
        await eventually(lambda: alice.rest("hold").list()["totalSize"] == 2, "both tasks")
        line.connection.transport.abort()
    tasks = {task["id"] for task in alice.rest("hold").list()["tasks"]}
    assert streamed in tasks
    for task in tasks:
        await eventually(lambda task=task: state(alice.rest("hold").get(task)) == "COMPLETED", "the end")  # type: ignore[misc]


async def test_a_call_whose_client_goes_at_once_is_done_all_the_same(alice: Caller) -> None:
    sent = [message(f"hi {number}") for number in range(20)]
    async with open_line(alice, "echo") as line:
        for number, one in enumerate(sent):
            await line.ask(number, "SendMessage", {"message": one})
        await line.result(0)
        line.connection.transport.abort()

    def all_have_ended() -> bool:
        tasks = alice.rest("echo").list(pageSize=100)["tasks"]
        return bool(tasks) and all(state(task) == "COMPLETED" for task in tasks)

    await eventually(all_have_ended, "no task that was left half begun")


async def test_a_client_that_goes_while_it_is_refused_ends_its_streams_too(alice: Caller, web: Web) -> None:
    """The refusals cannot be sent any more, and still the connection hears of its end, where its streams are ended."""
    for _ in range(5):
        async with open_line(alice, "hold") as line:
            await line.ask("stream", "SendStreamingMessage", saying("hold 600"))
            await line.result("stream")
            transport = line.connection.transport
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            for _ in range(200):
                await line.connection.send("no JSON")
            transport.abort()
    async with open_line(alice, "echo") as line:  # What was sent before it was dealt with.
        assert state((await line.call(1, "SendMessage", saying()))["task"]) == "COMPLETED"
    assert "Traceback" not in web.process.service.log.read_text()


async def test_two_connections_know_nothing_of_each_other(alice: Caller) -> None:
    async with open_line(alice, "hold") as one, open_line(alice, "hold") as two:
        await one.ask(1, "SendStreamingMessage", saying("hold"))
        task = (await one.result(1))["task"]["id"]
        await two.ask(1, "SubscribeToTask", {"id": task})
        assert (await two.result(1))["task"]["id"] == task
        await asyncio.gather(two.call(2, "CancelTask", {"id": task}))
        assert state((await one.rest(1))[-1]) == state((await two.rest(1))[-1]) == "CANCELED"


async def test_an_agent_without_streaming(alice: Caller) -> None:
    async with open_line(alice, "quiet") as line:
        with pytest.raises(Refused) as refused:
            await line.call(1, "SendStreamingMessage", saying())
        assert refused.value.reason == "UNSUPPORTED_OPERATION"
        await line.ask(1, "SendMessage", saying("steps 1 1"))
        assert state((await line.result(1))["task"]) == "COMPLETED"


async def test_each_call_is_counted_once(alice: Caller, deployment: Deployment) -> None:
    async with open_line(alice, "echo") as line:
        for number in range(7):
            await line.call(number, "SendMessage", saying())
        await line.ask("s", "SendStreamingMessage", saying())
        await line.rest("s")
        with pytest.raises(Refused):
            await line.call("none", "GetTask", {"id": "none"})
    statement = "SELECT binding, version, operation, calls, errors FROM agents_usage WHERE caller = %s ORDER BY 3"
    expected = [
        ("WEBSOCKET", "1.0", "GetTask", 1, 1),
        ("WEBSOCKET", "1.0", "SendMessage", 7, 0),
        ("WEBSOCKET", "1.0", "SendStreamingMessage", 1, 0),
    ]
    await eventually(lambda: deployment.query(statement, [alice.owner]) == expected, "the counters")


async def test_methods_of_0_3_work_too(alice: Caller) -> None:
    headers = {"authorization": alice.headers["authorization"]}
    said = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
    async with open_line(alice, "echo", additional_headers=headers) as line:
        task = await line.call(1, "message/send", {"message": said})
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        await line.ask(2, "message/stream", {"message": said | {"messageId": "n"}})
        items = await line.rest(2)
        assert (items[-1]["kind"], items[-1]["final"]) == ("status-update", True)
        assert (await line.call(3, "GetTask", {"id": task["id"]}))["id"] == task["id"]


async def test_extensions_are_those_of_the_upgrade(alice: Caller) -> None:
    """They are named when the connection is opened, by a header or by a browser's URL."""
    for query, more in [("", {"A2A-Extensions": f"urn:x, {EXTENSION}"}), (f"?A2A-Extensions={EXTENSION}", {})]:
        async with open_line(alice, "extended", query, additional_headers=alice.headers | more) as line:
            assert line.connection.response is not None
            assert line.connection.response.headers["A2A-Extensions"] == EXTENSION
            assert state((await line.call(1, "SendMessage", saying()))["task"]) == "COMPLETED"
    async with open_line(alice, "extended") as line:
        with pytest.raises(Refused) as refused:
            await line.call(1, "SendMessage", saying())
    assert refused.value.reason == "EXTENSION_SUPPORT_REQUIRED"
