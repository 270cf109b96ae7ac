"""A wrong reply is an error, whatever is wrong with it: a benchmark that cannot fail proves nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.calls import Call, HttpJson, JsonRpc, Known, card_call
from benchmarks.client import MAX_ERRORS, Load, Measure
from benchmarks.wire import Endpoint
from tests.benchmarks.stub import (
    AT,
    CLOSE,
    STREAM_HEAD,
    chunk,
    echo_task,
    event,
    json_response,
    response,
    serve,
    text_of,
)

KNOWN = [Known("t1", "hello")]
TOTAL = 1_000_000
LATER = echo_task("x", task_id="later", at="2026-01-02T03:04:05.6789Z")
Result = Callable[[dict[str, Any]], Any]


async def load(
    endpoint: Endpoint, make: Callable[[], Call], calls: int = 3, callers: int = 1, grace: float = 5.0
) -> Measure:
    return await Load(endpoint, make, seconds=5.0, calls=calls, grace=grace).run(callers)


def rpc(result: Result) -> Callable[[str, dict[str, Any]], list[bytes]]:
    return lambda _, body: [json_response({"jsonrpc": "2.0", "id": body["id"], "result": result(body)})]


def sent(body: dict[str, Any]) -> Any:
    return {"task": echo_task(text_of(body))}


def page(count: int = 50, **changes: Any) -> dict[str, Any]:
    listed = [echo_task("x", task_id=f"t{n}") for n in range(count)]
    return {"tasks": listed, "nextPageToken": "next", "pageSize": 50, "totalSize": TOTAL} | changes


async def test_right_replies_are_counted_and_timed() -> None:
    async with serve(rpc(sent)) as endpoint:
        measure = await load(endpoint, JsonRpc(endpoint).send, calls=40, callers=4)
    assert (len(measure.latencies), measure.errors) == (40, [])
    assert measure.rate == 40 / measure.seconds
    assert 0 < measure.p50 < measure.seconds


async def test_every_call_has_its_own_id_text_and_message() -> None:
    seen: list[tuple[int, str, str]] = []

    def answer(_: str, body: dict[str, Any]) -> list[bytes]:
        seen.append((body["id"], text_of(body), body["params"]["message"]["messageId"]))
        return rpc(sent)("", body)

    async with serve(answer) as endpoint:
        await load(endpoint, JsonRpc(endpoint).send, calls=10)
    assert [len(set(column)) for column in zip(*seen, strict=True)] == [10, 10, 10]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda body: {"task": echo_task("another")}, "another text: 'another'"),
        (lambda body: {"task": echo_task(text_of(body), "TASK_STATE_FAILED")}, "not completed: TASK_STATE_FAILED"),
        (lambda body: {"task": echo_task(text_of(body), "TASK_STATE_WORKING")}, "not completed: TASK_STATE_WORKING"),
        (lambda body: {"task": echo_task(text_of(body)) | {"artifacts": []}}, "0 artifacts"),
        (lambda body: {"task": echo_task(text_of(body)) | {"contextId": ""}}, "a task without ids"),
        (lambda body: {"task": echo_task(text_of(body)) | {"status": {"state": "x"}}}, "missing required field"),
        (lambda body: {"message": {"parts": [{"text": text_of(body)}]}}, "missing required field `task`"),
        (lambda body: None, "error: "),
    ],
)
async def test_wrong_send_results_are_errors(wrong: Result, message: str) -> None:
    async with serve(rpc(wrong)) as endpoint:
        measure = await load(endpoint, JsonRpc(endpoint).send)
    assert (measure.latencies, len(measure.errors)) == ([], 3)
    assert message in measure.errors[0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _, b: [json_response({"jsonrpc": "2.0", "id": b["id"], "error": {"code": -32603}})], "error: "),
        (lambda _, b: [json_response({"jsonrpc": "2.0", "id": b["id"] + 1, "result": sent(b)})], "answers call"),
        (lambda _, b: [json_response({"jsonrpc": "1.0", "id": b["id"], "result": sent(b)})], "answers call"),
        (lambda _, b: [json_response({"jsonrpc": "2.0", "id": b["id"], "result": sent(b)}, 500)], "status 500"),
        (lambda _, b: [response(b"<html>", 200)], "malformed"),
        (lambda _, b: [response(b"{}", 200)[:-1], CLOSE], "connection closed before the end of the response"),
        (lambda _, b: [CLOSE], "connection closed before the end of the response"),
        (lambda _, b: [b"SSH-2.0-x\r\n\r\n", CLOSE], "not an HTTP/1.1 response"),
        (lambda _, b: [rpc(sent)("", b)[0] + b"x"], "more bytes than Content-Length says"),
        (lambda _, b: [STREAM_HEAD + chunk(b"{}") + chunk(b"") + b"x"], "bytes after the end of the response"),
        (lambda _, b: [STREAM_HEAD + b"2\r\n{}xx"], "chunk without its end"),
        (lambda _, b: [STREAM_HEAD + b"xx\r\n"], "invalid literal"),
    ],
)
async def test_wrong_responses_are_errors(answer: Any, message: str) -> None:
    async with serve(answer) as endpoint:
        measure = await load(endpoint, JsonRpc(endpoint).send, calls=2)
    assert (measure.latencies, len(measure.errors)) == ([], 2)
    assert message in measure.errors[0]


async def test_a_server_that_never_answers_is_an_error_and_ends() -> None:
    async with serve(lambda _, body: []) as endpoint:
        measure = await Load(endpoint, JsonRpc(endpoint).send, seconds=0.0, calls=0, grace=0.2).run(2)
        assert (measure.latencies, measure.errors) == ([], [])
        measure = await Load(endpoint, JsonRpc(endpoint).send, seconds=0.1, grace=0.2).run(2)
    assert measure.latencies == []
    assert measure.errors == ["no answer for 0.2 s"] * 2


async def test_no_server_is_an_error() -> None:
    async with serve(lambda _, body: []) as endpoint:
        pass
    measure = await load(endpoint, JsonRpc(endpoint).send)
    assert measure.latencies == []
    assert measure.errors[0].startswith("no connection: ")


async def test_a_broken_server_is_given_up() -> None:
    async with serve(rpc(lambda body: None)) as endpoint:
        measure = await load(endpoint, JsonRpc(endpoint).send, calls=0)
    assert len(measure.errors) == MAX_ERRORS


async def test_some_wrong_replies_among_right_ones_are_counted() -> None:
    turn = itertools.count()
    mixed = rpc(lambda body: sent(body) if next(turn) % 4 else {"task": echo_task("wrong")})
    async with serve(mixed) as endpoint:
        measure = await load(endpoint, JsonRpc(endpoint).send, calls=20)
    assert (len(measure.latencies), len(measure.errors)) == (15, 5)


async def test_connections_that_the_server_ends_are_opened_again() -> None:
    def answer(_: str, body: dict[str, Any]) -> list[bytes]:
        whole = json_response({"jsonrpc": "2.0", "id": body["id"], "result": sent(body)})
        return [whole.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1), CLOSE]

    async with serve(answer) as endpoint:
        measure = await load(endpoint, JsonRpc(endpoint).send, calls=5)
    assert (len(measure.latencies), measure.errors) == (5, [])


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (echo_task("hello"), ""),
        (echo_task("hello", task_id="t2"), "another task: t2"),
        (echo_task("other"), "another text"),
        (echo_task("hello") | {"history": []}, "no history"),
        (echo_task("hello") | {"history": echo_task("other")["history"]}, "another message in the history"),
        (echo_task("hello", "TASK_STATE_WORKING"), "not completed"),
    ],
)
async def test_get_is_checked(task: Any, message: str) -> None:
    async with serve(rpc(lambda body: task)) as endpoint:
        measure = await load(endpoint, lambda: JsonRpc(endpoint).get(KNOWN), calls=2)
    assert len(measure.latencies) == (0 if message else 2)
    assert all(message in error for error in measure.errors)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (page(), ""),
        (page(49), "49 different tasks"),
        (page(totalSize=TOTAL - 1), "total size 999999, not 1000000"),
        (page(nextPageToken=""), "no next page"),
        (page(pageSize=100), "page size 100"),
        (page(tasks=[echo_task("x")] * 50), "1 different tasks"),
        (page(0, tasks=[echo_task("x", "TASK_STATE_WORKING", str(n)) for n in range(50)]), "not completed"),
        (page(tasks=[*page(49)["tasks"], LATER]), "not newest first"),
    ],
)
async def test_lists_are_checked(result: Any, message: str) -> None:
    async with serve(rpc(lambda body: result)) as endpoint:
        measure = await load(endpoint, lambda: JsonRpc(endpoint).list_tasks(TOTAL), calls=2)
    assert len(measure.latencies) == (0 if message else 2)
    assert all(message in error for error in measure.errors)


async def test_cards_are_checked() -> None:
    card = {"name": "Echo", "version": "1", "supportedInterfaces": [{"url": "x"}], "skills": [{"id": "x"}]}
    for shown, right in ((card, 2), (card | {"skills": []}, 0), (card | {"name": ""}, 0), ({"name": "Echo"}, 0)):
        async with serve(lambda line, body, shown=shown: [json_response(shown)]) as endpoint:  # type: ignore[misc]
            measure = await load(endpoint, card_call(endpoint), calls=2)
        assert (len(measure.latencies), len(measure.errors)) == (right, 2 - right)


async def test_http_json_is_checked_without_an_envelope() -> None:
    def answer(line: str, body: dict[str, Any]) -> list[bytes]:
        if line == "POST /rpc/message:send HTTP/1.1":
            return [json_response(sent(body))]
        if line == "GET /rpc/tasks/t1 HTTP/1.1":
            return [json_response(echo_task("hello"))]
        if line == "GET /rpc/tasks?pageSize=50 HTTP/1.1":
            return [json_response(page())]
        return [json_response({"error": {"code": 404}}, 404)]

    async with serve(answer) as endpoint:
        binding = HttpJson(endpoint)
        for make in (binding.send, lambda: binding.get(KNOWN), lambda: binding.list_tasks(TOTAL)):
            measure = await load(endpoint, make, calls=2)
            assert (len(measure.latencies), measure.errors) == (2, [])
        measure = await load(endpoint, lambda: binding.get([Known("t2", "hello")]), calls=2)
        assert (measure.latencies, len(measure.errors)) == ([], 2)


def updates(text: str) -> list[dict[str, Any]]:
    """The events of a right stream."""
    task = {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_SUBMITTED", "timestamp": AT}}
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return [
        {"task": task},
        {"statusUpdate": {"taskId": "t1", "status": {"state": "TASK_STATE_WORKING", "timestamp": AT}}},
        {"artifactUpdate": {"taskId": "t1", "artifact": artifact}},
        {"statusUpdate": {"taskId": "t1", "status": {"state": "TASK_STATE_COMPLETED", "timestamp": AT}}},
    ]


def other_task(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    events[2]["artifactUpdate"]["taskId"] = "t2"
    return events


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e, ""),
        (lambda e: [], "the first event is not the task"),
        (lambda e: e[1:], "the first event is not the task"),
        (lambda e: [e[0], e[2], e[3]], "an artifact while TASK_STATE_SUBMITTED"),
        (lambda e: [e[0], e[1], e[3]], "0 artifacts"),
        (lambda e: e[:3], "states ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']"),
        (lambda e: [e[0], e[1], e[3], e[2]], "an event after the last one"),
        (lambda e: [e[0], e[1], e[1], e[2], e[3]], "states"),
        (lambda e: [e[0], e[1], e[2], e[2], e[3]], "2 artifacts"),
        (lambda e: [*e, e[3]], "an event after the last one"),
        (lambda e: [e[0], *e], "an event that is no update"),
        (lambda e: updates("other"), "another text"),
        (other_task, "an event of another task"),
    ],
)
@pytest.mark.parametrize("bare", [False, True])
async def test_the_whole_sequence_of_a_stream_is_checked(change: Any, message: str, bare: bool) -> None:
    def answer(_: str, body: dict[str, Any]) -> list[bytes]:
        results = change(updates(text_of(body)))
        events = results if bare else [{"jsonrpc": "2.0", "id": body["id"], "result": r} for r in results]
        return [STREAM_HEAD, *(chunk(b": alive\n\n" + event(e)) for e in events), chunk(b"")]

    async with serve(answer) as endpoint:
        binding = HttpJson(endpoint) if bare else JsonRpc(endpoint)
        measure = await load(endpoint, binding.stream, calls=2)
    assert len(measure.latencies) == len(measure.first_events) == (0 if message else 2)
    assert all(message in error for error in measure.errors)


async def test_a_stream_that_breaks_off_is_an_error() -> None:
    def answer(_: str, body: dict[str, Any]) -> list[bytes]:
        events = [{"jsonrpc": "2.0", "id": body["id"], "result": r} for r in updates(text_of(body))]
        return [STREAM_HEAD, *(chunk(event(e)) for e in events), CLOSE]

    async with serve(answer) as endpoint:
        measure = await load(endpoint, JsonRpc(endpoint).stream, calls=2)
    assert (measure.latencies, len(measure.errors)) == ([], 2)


def test_only_loopback_is_loaded() -> None:
    with pytest.raises(ValueError, match="not http on a loopback port"):
        Endpoint.parse("http://example.com:80/rpc")
