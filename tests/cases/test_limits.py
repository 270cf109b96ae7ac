"""Area limits: nesting, sizes, media types (§3.1.1, §13.4)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.cases.reading import raw_message, raw_part
from tests.support.callers import Caller
from tests.support.peers import message
from tests.support.refusals import refusal_of_rest, refusal_of_rpc
from tests.support.wire import Connection, request

MIB = 1024 * 1024


def nested(depth: int, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * depth + "1" + closing * depth


def parse_error(caller: Caller, binding: str, params: str) -> None:
    """Both bindings call it a parse error, and store nothing."""
    with caller.nothing_stored():
        if binding == "jsonrpc":
            response = caller.jsonrpc("data").post(
                f'{{"jsonrpc":"2.0","id":"q1","method":"SendMessage","params":{params}}}'
            )
            refused = refusal_of_rpc(response.status_code, response.json(), id=None)
        else:
            response = caller.rest("data").ask("POST", "/message:send", params)
            refused = refusal_of_rest(response.status_code, response.json())
    assert (refused.reason, refused.message) == ("PARSE_ERROR", "The JSON is nested deeper than 100 levels.")


@pytest.mark.case("W33")
@pytest.mark.spec("13.4")
@pytest.mark.parametrize("depth", [101, 5_000, 200_000])
@pytest.mark.parametrize("place", ["metadata", "message metadata", "data", "part metadata", "unknown", "parts"])
def test_deep_nesting_is_refused_at_once(alice: Caller, binding: str, place: str, depth: int) -> None:
    for kind in ("objects", "arrays", "unclosed"):
        parse_error(alice, binding, too_deep(place, kind, depth))
    assert alice.at("data", binding).say("still there")["status"]["state"] == "TASK_STATE_COMPLETED"


def too_deep(place: str, kind: str, depth: int) -> str:
    """SendMessage parameters with something deep in this place."""
    opening, closing = ("[", "]") if kind == "arrays" else ('{"a":', "}")
    deep = nested(depth, opening, "" if kind == "unclosed" else closing)
    if "metadata" in place and kind == "arrays":
        deep = f'{{"a":{deep}}}'
    places = {
        "metadata": raw_message()[:-1] + f',"metadata":{deep}}}',
        "message metadata": raw_message(metadata=deep),
        "data": raw_part(f'{{"data":{deep}}}'),
        "part metadata": raw_part(f'{{"text":"a","metadata":{deep}}}'),
        "unknown": raw_message()[:-1] + f',"unknown":{deep}}}',
        "parts": raw_message(deep),
    }
    return places[place]


@pytest.mark.case("W33")
@pytest.mark.spec("13.4")
def test_nesting_within_the_limit_works(alice: Caller, json_binding: str) -> None:
    data = alice.at("data", json_binding)
    deep = json.loads(nested(90))
    task = data.say([{"data": deep, "metadata": deep}], metadata=deep)
    assert task["artifacts"][0]["parts"] == [{"data": deep, "metadata": deep}]
    assert data.get(task["id"])["history"][0]["metadata"] == deep


@pytest.mark.case("W33")
@pytest.mark.spec("13.4")
def test_brackets_in_texts_are_no_nesting(alice: Caller, binding: str) -> None:
    text = '[{"' * 5_000
    assert alice.at("data", binding).say(text)["artifacts"][0]["parts"] == [{"text": text}]
    assert alice.at("data", binding).say([{"data": text}])["artifacts"][0]["parts"] == [{"data": text}]


@pytest.mark.case("M01")
@pytest.mark.spec("5.1")
def test_three_mebibytes_work(alice: Caller, binding: str) -> None:
    raw = base64.b64encode(bytes(range(256)) * (3 * MIB // 256)).decode()
    data = alice.at("data", binding)
    task = data.say([{"raw": raw, "mediaType": "application/octet-stream"}])
    assert task["artifacts"][0]["parts"] == [{"raw": raw, "mediaType": "application/octet-stream"}]
    assert data.get(task["id"]) == task


@pytest.mark.case("M01")
@pytest.mark.spec("5.1")
@pytest.mark.parametrize("operation", ["send", "stream"])
def test_one_limit_for_both_bindings(alice: Caller, binding: str, operation: str) -> None:
    """8 MiB unless the agent says something else: 2,048 bytes here."""
    for slug, limit in [("data", 8 * MIB), ("small", 2048)]:
        peer = alice.at(slug, binding)
        with alice.refused("REQUEST_TOO_LARGE") as refusal:
            getattr(peer, operation)({"message": message("x" * limit)})
        assert refusal.value.metadata == {"limitBytes": str(limit)}
        assert peer.say("still there")["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.case("M01")
@pytest.mark.spec("5.1")
def test_the_limit_is_exact(alice: Caller, json_binding: str) -> None:
    peer = alice.at("small", json_binding)
    empty = len(json.dumps({"message": message("")}, ensure_ascii=False))
    if json_binding == "jsonrpc":
        empty += len('{"jsonrpc": "2.0", "id": "q1", "method": "SendMessage","params":}')
    assert peer.say("x" * (2048 - empty))["status"]["state"] == "TASK_STATE_COMPLETED"
    with alice.refused("REQUEST_TOO_LARGE"):
        peer.say("x" * (2049 - empty))


@pytest.mark.case("M01")
@pytest.mark.spec("5.1")
@pytest.mark.parametrize("path", ["/agents/small", "/agents/small/message:send", "/agents/small/message:stream"])
def test_a_chunked_body_is_measured_as_it_comes(alice: Caller, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with alice.nothing_stored(), Connection(alice.web.port, head) as connection:
        for _ in range(5):
            connection.send(b"200\r\n" + b"x" * 512 + b"\r\n")
        assert connection.read_head() == 413
        assert b"REQUEST_TOO_LARGE" in connection.read_body()


@pytest.mark.case("M01")
@pytest.mark.spec("5.1")
def test_a_declared_length_beyond_the_limit_is_refused_before_the_body(alice: Caller) -> None:
    head = request("POST", "/agents/small/message:send", b"", "Expect: 100-continue")
    head = head.replace(b"Content-Length: 0", b"Content-Length: 999999999999")
    with Connection(alice.web.port, head) as connection:
        assert connection.read_head() == 413
        assert json.loads(connection.read_body())["error"]["details"][0]["metadata"]["limitBytes"] == "2048"


@pytest.mark.parametrize("path", ["/agents/echo", "/agents/echo/message:send", "/a2a", "/a2a-tasks/echo/tasks"])
def test_a_declared_length_of_thousands_of_digits_is_a_number(alice: Caller, path: str) -> None:
    head = request("POST", path, b"{").replace(b"Content-Length: 1\r\n", b"Content-Length: %b1\r\n" % (b"0" * 5000))
    with Connection(alice.web.port, head) as connection:
        connection.read_head()
        assert b"PARSE_ERROR" in connection.read_body()


@pytest.mark.case("M03")
@pytest.mark.spec("3.1.1")
@pytest.mark.parametrize(
    ("part", "media_type"),
    [
        ({"raw": "AAA=", "mediaType": "image/png"}, "image/png"),
        ({"url": "https://e.test/f.pdf", "mediaType": "application/pdf"}, "application/pdf"),
        ({"data": {}, "mediaType": "application/json"}, "application/json"),
        ({"text": "<b>", "mediaType": "text/html"}, "text/html"),
        ({"text": "x", "mediaType": "text"}, "text"),
        ({"text": "x", "mediaType": "text/plainer"}, "text/plainer"),
        ({"raw": "AAA=", "mediaType": "*/*"}, "*/*"),
    ],
)
def test_a_media_type_that_the_agent_does_not_take(
    alice: Caller, binding: str, part: dict[str, Any], media_type: str
) -> None:
    echo = alice.at("echo", binding)
    for parts in ([part], [{"text": "fine"}, part]):
        for call in (echo.send, echo.stream):
            with alice.refused("CONTENT_TYPE_NOT_SUPPORTED") as refusal:
                call({"message": message(parts)})
            assert refusal.value.metadata == {"mediaType": media_type}
    assert alice.at("data", binding).say([part])["artifacts"][0]["parts"] == [part]


@pytest.mark.case("M03")
@pytest.mark.spec("3.1.1")
def test_a_follow_up_of_the_wrong_media_type_changes_nothing(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say("hi")
    with alice.refused("CONTENT_TYPE_NOT_SUPPORTED"):
        ask.say([{"raw": "AAA=", "mediaType": "image/png"}], taskId=task["id"])
    assert ask.get(task["id"]) == task


@pytest.mark.case("M04")
@pytest.mark.spec("3.2.2")
@pytest.mark.parametrize(
    "media_type",
    ["TEXT/PLAIN; charset=utf-8", "text/plain", "Text/Plain", "text/plain;charset=UTF-8", " text/plain ", ""],
)
def test_case_and_parameters_of_a_media_type_do_not_count(alice: Caller, binding: str, media_type: str) -> None:
    task = alice.at("echo", binding).say([{"text": "hi", "mediaType": media_type}])
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.case("M04")
@pytest.mark.spec("3.2.2")
@pytest.mark.parametrize("modes", [["image/png"], ["text/plain"], [], ["*/*"], ["nonsense"]])
def test_accepted_output_modes_are_a_wish(alice: Caller, binding: str, modes: list[str]) -> None:
    task = alice.at("echo", binding).say("hi", configuration={"acceptedOutputModes": modes})
    assert task["artifacts"][0]["parts"] == [{"text": "hi"}]


@pytest.mark.spec("4.1.4")
@pytest.mark.parametrize("member", ["messageId", "contextId", "taskId"])
def test_huge_ids_are_refused(alice: Caller, binding: str, member: str) -> None:
    echo = alice.at("echo", binding)
    for length in (256, 100_000):
        with alice.refused("INVALID_PARAMS", f"message.{member}"):
            echo.say("hi", **{member: "x" * length})


@pytest.mark.spec("4.1.4")
def test_huge_ids_to_look_up_are_refused(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    for call in (echo.get, echo.cancel, echo.subscribe):
        with alice.refused("INVALID_PARAMS", "id"):
            call("x" * 10_000)
    with alice.refused("INVALID_PARAMS", "contextId"):
        echo.list(contextId="x" * 10_000)
    with alice.refused("INVALID_PARAMS", "pageToken"):
        echo.list(pageToken="x" * 10_000)


@pytest.mark.spec("9.3")
def test_a_huge_request_id_is_refused(alice: Caller) -> None:
    body = '{"jsonrpc":"2.0","id":"' + "x" * 100_000 + '","method":"ListTasks"}'
    response = alice.jsonrpc("echo").post(body)
    assert refusal_of_rpc(response.status_code, response.json(), id=None).code == -32600


@pytest.mark.spec("13.4")
def test_thousands_of_parts_and_of_violations(alice: Caller, binding: str) -> None:
    data = alice.at("data", binding)
    parts = [{"text": str(number)} for number in range(5_000)]
    assert data.say(parts)["artifacts"][0]["parts"] == parts
    with alice.refused("INVALID_PARAMS", *(f"message.parts[{number}]" for number in range(20))):
        data.say([{}] * 5_000)
