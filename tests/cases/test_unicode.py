"""Area unicode: any text comes through, or is refused; nothing breaks half-way (§5.1, §14.1.1)."""

from __future__ import annotations

import pytest

from tests.cases.reading import raw_message, raw_part
from tests.support.callers import Caller
from tests.support.refusals import refusal_of_rest, refusal_of_rpc

TEXTS = [
    "žluť 你好 😀",
    "a\0b",
    "\0",
    "\x01\x1f\x7f\x85",
    "line\nbreak\r\nand\ttab",
    "\u2028\u2029\ufeff",
    "\ufffe\uffff\U0010ffff",
    "e\u0301 \u202eright to left",
    "👩\u200d👩\u200d👧\u200d👦",
    "\\u0041 \\n \\\\ \"quoted\" 'x' </script>",
    "data: x\n\ndata: y\n\nid: 5",
    "${x} {{x}} %s %(x)s",
    "好" * 20_000,
]


@pytest.mark.case("W23")
@pytest.mark.case("W26")
@pytest.mark.spec("14.1.1")
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:12]))
def test_text_comes_back_as_it_was(alice: Caller, binding: str, text: str) -> None:
    echo = alice.at("echo", binding)
    task = echo.say(text)
    for found in (task, echo.get(task["id"]), *echo.list(historyLength=1, includeArtifacts=True)["tasks"]):
        assert found["status"]["state"] == "TASK_STATE_COMPLETED"
        assert found["history"][0]["parts"] == [{"text": text}]
        assert found["artifacts"][0]["parts"] == [{"text": text}]


@pytest.mark.case("W26")
@pytest.mark.spec("14.1.1")
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:12]))
def test_streamed_text_is_equal_and_each_event_one_line(alice: Caller, binding: str, text: str) -> None:
    with alice.at("echo", binding).say_streaming(text) as stream:
        events = stream.rest()
    updates = [e.response["artifactUpdate"]["artifact"] for e in events if e.kind == "artifactUpdate"]
    artifacts = [*events[0].response["task"].get("artifacts", []), *updates]
    texts = [part["text"] for artifact in artifacts for part in artifact["parts"]]
    assert texts == [text]
    assert events[-1].state == "COMPLETED"


@pytest.mark.case("W26")
@pytest.mark.spec("14.1.1")
def test_streamed_text_is_utf_8_and_not_escaped(alice: Caller, json_binding: str) -> None:
    text = "žluť 你好 😀"
    with alice.at("echo", json_binding).say_streaming(text) as stream:
        stream.rest()
        assert stream.header("content-type") == "text/event-stream; charset=utf-8"
    assert text.encode() in stream.raw
    assert b"\\u" not in stream.raw


@pytest.mark.case("W23")
@pytest.mark.spec("3.3.2")
@pytest.mark.parametrize(
    ("params", "fields"),
    [
        (raw_message(messageId='"a\\u0000b"'), ["message.messageId"]),
        (raw_message(contextId='"a\\u0000b"'), ["message.contextId"]),
        (raw_message(taskId='"a\\u0000b"'), ["message.taskId"]),
        (raw_message(referenceTaskIds='["x","a\\u0000b"]'), ["message.referenceTaskIds[1]"]),
        (raw_message()[:-1] + ',"tenant":"a\\u0000b"}', ["tenant"]),
        (raw_message(messageId='"\\u0000"', contextId='"\\u0000"'), ["message.messageId", "message.contextId"]),
    ],
)
def test_a_zero_in_an_id_is_refused(alice: Caller, json_binding: str, params: str, fields: list[str]) -> None:
    echo = alice.at("echo", json_binding)
    for call in (echo.send, echo.stream):
        with alice.refused("INVALID_PARAMS", *fields):
            call(params)


@pytest.mark.case("W23")
@pytest.mark.spec("3.3.2")
def test_a_zero_in_an_id_to_look_up_is_refused(alice: Caller, json_binding: str) -> None:
    echo = alice.at("echo", json_binding)
    for call in (echo.get, echo.cancel, echo.subscribe):
        with alice.refused("INVALID_PARAMS", "id"):
            call("a\0b")
    with alice.refused("INVALID_PARAMS", "contextId"):
        echo.list(contextId="a\0b")
    with alice.refused("INVALID_PARAMS", "pageToken"):
        echo.list(pageToken="a\0b")
    with alice.refused("INVALID_PARAMS", "status"):
        echo.list(status="a\0b")


@pytest.mark.case("W23")
@pytest.mark.spec("3.3.2")
def test_zeros_everywhere_else_come_back(alice: Caller, binding: str) -> None:
    zero = "a\0b"
    part = {"text": zero, "mediaType": f"text/plain; x={zero}", "filename": zero, "metadata": {zero: zero}}
    echo = alice.at("data", binding)
    parts = [part, {"url": zero}, {"data": {zero: [zero]}}]
    task = echo.say(parts, metadata={zero: zero}, extensions=[zero])
    (stored,) = echo.get(task["id"])["history"]
    assert stored["parts"] == task["artifacts"][0]["parts"] == parts
    assert (stored["metadata"], stored["extensions"]) == ({zero: zero}, [zero])
    accepted = {"acceptedOutputModes": [zero]}
    assert echo.say(parts, configuration=accepted)["status"]["state"] == "TASK_STATE_COMPLETED"


SURROGATES = ['"x\\ud800y"', '"\\udc00"', '"\\ud800\\ud800"', '"\\udbff"', '"\\udc00\\ud800"', '"\\ud83dx\\ude00"']


@pytest.mark.case("W25")
@pytest.mark.spec("14.1.1")
@pytest.mark.parametrize(
    ("template", "field"),
    [
        (raw_part('{"text":@}'), "message.parts[0].text"),
        (raw_part('{"url":@}'), "message.parts[0].url"),
        (raw_part('{"text":"a","filename":@}'), "message.parts[0].filename"),
        (raw_part('{"data":@}'), "message.parts[0].data"),
        (raw_part('{"data":{"a":[@]}}'), "message.parts[0].data.a[0]"),
        (raw_part('{"data":{@:1}}'), "message.parts[0].data"),
        (raw_part('{"text":"a","metadata":{"k":@}}'), "message.parts[0].metadata.k"),
        (raw_message(messageId="@"), "message.messageId"),
        (raw_message(contextId="@"), "message.contextId"),
        (raw_message(metadata='{"k":@}'), "message.metadata.k"),
        (raw_message(extensions="[@]"), "message.extensions[0]"),
        (raw_message()[:-1] + ',"metadata":{"k":@}}', "metadata.k"),
        (raw_message()[:-1] + ',"unknown":@}', "unknown"),
    ],
)
def test_lone_surrogates_are_refused(alice: Caller, json_binding: str, template: str, field: str) -> None:
    for text in SURROGATES:
        with alice.refused("INVALID_PARAMS", field):
            alice.at("data", json_binding).send(template.replace("@", text))


@pytest.mark.case("W25")
@pytest.mark.spec("14.1.1")
def test_a_surrogate_pair_is_a_character(alice: Caller, binding: str) -> None:
    task = alice.at("echo", binding).send(raw_part('{"text":"\\ud83d\\ude00"}'))["task"]
    assert task["artifacts"][0]["parts"] == [{"text": "😀"}]


def refused_as_no_json(alice: Caller, params: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":"q1","method":"SendMessage","params":%b}' % params
    response = alice.jsonrpc("data").post(body)
    assert refusal_of_rpc(response.status_code, response.json(), id=None).code == -32700
    response = alice.rest("data").ask("POST", "/message:send", params)
    assert refusal_of_rest(response.status_code, response.json()).reason == "PARSE_ERROR"


BROKEN = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80", b"\xf4\x90\x80\x80", b"\x80"]


@pytest.mark.case("W25")
@pytest.mark.spec("14.1.1")
@pytest.mark.parametrize(
    "template",
    [
        raw_part('{"text":"@"}'),
        raw_part('{"data":["@"]}'),
        raw_part('{"data":{"@":1}}'),
        raw_message(messageId='"@"'),
        raw_message(metadata='{"k":"@"}'),
        raw_message()[:-1] + ',"unknown":"@"}',
        raw_message()[:-1] + ',"@":1}',
    ],
)
def test_broken_utf_8_is_no_json(alice: Caller, template: str) -> None:
    for bad in BROKEN:
        params = template.encode().replace(b"@", bad)
        with alice.nothing_stored():
            refused_as_no_json(alice, params)
