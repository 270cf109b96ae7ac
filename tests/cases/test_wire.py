"""Area wire: what the JSON of a message may be, in both bindings (§4.1, §5.5 to §5.7)."""

from __future__ import annotations

import json
import re

import pytest

from tests.cases.reading import raw_message, raw_part
from tests.support.callers import Caller
from tests.support.peers import message

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.case("W01")
@pytest.mark.spec("5.7")
@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"messageId": None}, "message.messageId"),
        ({"messageId": '""'}, "message.messageId"),
        ({"messageId": "null"}, "message.messageId"),
        ({"messageId": "5"}, "message.messageId"),
        ({"messageId": '["m1"]'}, "message.messageId"),
        ({"role": None}, "message.role"),
        ({"role": "null"}, "message.role"),
        ({"role": '""'}, "message.role"),
        ({"role": '"ROLE_UNSPECIFIED"'}, "message.role"),
        ({"role": "0"}, "message.role"),
        ({"parts": None}, "message.parts"),
    ],
)
def test_required_members(alice: Caller, json_binding: str, members: dict[str, str | None], field: str) -> None:
    echo = alice.at("echo", json_binding)
    for call in (echo.send, echo.stream):
        with alice.refused("INVALID_PARAMS", field):
            call(raw_message(**members))  # type: ignore[arg-type]


@pytest.mark.case("W01")
@pytest.mark.spec("5.7")
def test_all_that_is_missing_is_named_at_once(alice: Caller, binding: str) -> None:
    with alice.refused("INVALID_PARAMS", "message.messageId", "message.role", "message.parts"):
        alice.at("echo", binding).send('{"message":{"contextId":"c"}}')


@pytest.mark.case("W03")
@pytest.mark.case("W04")
@pytest.mark.spec("5.7")
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ("{}", "message"),
        ("", "message"),
        ('{"message":null}', "message"),
        ('{"message":"hi"}', "message"),
        ('{"message":[]}', "message"),
        ('{"message":5}', "message"),
        (raw_message("[]"), "message.parts"),
        (raw_message("null"), "message.parts"),
        (raw_message("[null]"), "message.parts[0]"),
        (raw_message('[{"text":"a"},null]'), "message.parts[1]"),
        (raw_message('{"text":"a"}'), "message.parts"),
        (raw_message('"a"'), "message.parts"),
        (raw_message('["a"]'), "message.parts[0]"),
        (raw_message('[["a"]]'), "message.parts[0]"),
        (raw_part('{"text":5}'), "message.parts[0].text"),
        (raw_part('{"text":{"a":1}}'), "message.parts[0].text"),
        (raw_part('{"url":["x"]}'), "message.parts[0].url"),
        (raw_part('{"text":"a","mediaType":5}'), "message.parts[0].mediaType"),
        (raw_part('{"text":"a","filename":{}}'), "message.parts[0].filename"),
        (raw_part('{"text":"a","metadata":"x"}'), "message.parts[0].metadata"),
        (raw_part('{"text":"a","metadata":[1]}'), "message.parts[0].metadata"),
        (raw_message(metadata="[]"), "message.metadata"),
        (raw_message(metadata="5"), "message.metadata"),
        (raw_message(extensions='"u"'), "message.extensions"),
        (raw_message(extensions="[5]"), "message.extensions[0]"),
        (raw_message(referenceTaskIds='"t"'), "message.referenceTaskIds"),
        (raw_message(referenceTaskIds='[""]'), "message.referenceTaskIds[0]"),
        (raw_message(contextId="5"), "message.contextId"),
        (raw_message(taskId="{}"), "message.taskId"),
        (raw_message()[:-1] + ',"configuration":[]}', "configuration"),
        (raw_message()[:-1] + ',"configuration":{"historyLength":-1}}', "configuration.historyLength"),
        (raw_message()[:-1] + ',"configuration":{"returnImmediately":"true"}}', "configuration.returnImmediately"),
        (raw_message()[:-1] + ',"configuration":{"returnImmediately":1}}', "configuration.returnImmediately"),
        (raw_message()[:-1] + ',"configuration":{"acceptedOutputModes":"a"}}', "configuration.acceptedOutputModes"),
        (raw_message()[:-1] + ',"metadata":[]}', "metadata"),
        (raw_message()[:-1] + ',"metadata":"x"}', "metadata"),
        (raw_message()[:-1] + ',"tenant":5}', "tenant"),
    ],
)
def test_wrong_shapes(alice: Caller, json_binding: str, params: str, field: str) -> None:
    echo = alice.at("echo", json_binding)
    for call in (echo.send, echo.stream):
        with alice.refused("INVALID_PARAMS", field):
            call(params or "null")


@pytest.mark.case("W05")
@pytest.mark.case("W16")
@pytest.mark.spec("5.7")
@pytest.mark.parametrize(
    "params",
    [
        raw_part('{"text":"hi","colour":"red"}'),
        raw_part('{"kind":"text","text":"hi"}').replace('{"message":{', '{"message":{"kind":"message",'),
        raw_part('{"text":"hi","content":{"$case":"text","value":"x"}}'),
        raw_message(colour='{"a":[1,{"b":null}]}', future="1e5"),
        raw_message()[:-1] + ',"colour":"red","blocking":true}',
        raw_message()[:-1] + ',"configuration":{"blocking":true,"colour":[]}}',
    ],
)
def test_unknown_members_are_ignored_and_not_returned(alice: Caller, json_binding: str, params: str) -> None:
    echo = alice.at("echo", json_binding)
    task = echo.send(params)["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    (stored,) = echo.get(task["id"])["history"]
    assert stored == {
        "messageId": "m1",
        "contextId": task["contextId"],
        "taskId": task["id"],
        "role": "ROLE_USER",
        "parts": [{"text": "hi"}],
    }


@pytest.mark.case("W11")
@pytest.mark.spec("5.5")
@pytest.mark.parametrize("role", ["1", "1.0", '"ROLE_USER"', '"ROLE\\u005fUSER"'])
def test_a_role_by_name_or_number_is_printed_by_name(alice: Caller, binding: str, role: str) -> None:
    echo = alice.at("echo", binding)
    task = echo.send(raw_message(role=role))["task"]
    assert [m["role"] for m in echo.get(task["id"])["history"]] == ["ROLE_USER"]


@pytest.mark.case("W11")
@pytest.mark.spec("5.5")
def test_proto_names_are_read_and_json_names_printed(alice: Caller, binding: str) -> None:
    params = (
        '{"message":{"message_id":"m1","context_id":"c","role":1,"parts":[{"text":"hi","media_type":"text/plain"}],'
        '"reference_task_ids":["x"]},"configuration":{"history_length":"1","return_immediately":false}}'
    )
    task = alice.at("echo", binding).send(params)["task"]
    assert task["history"] == [
        {
            "messageId": "m1",
            "contextId": "c",
            "taskId": task["id"],
            "role": "ROLE_USER",
            "parts": [{"text": "hi", "mediaType": "text/plain"}],
            "referenceTaskIds": ["x"],
        }
    ]


@pytest.mark.case("W13")
@pytest.mark.case("W15")
@pytest.mark.spec("5.5")
@pytest.mark.parametrize(
    "role",
    [
        *('"user"', '"USER"', '"role_user"', '"agent"', '"ROLE_AGENT"', "2", '"ROLE_SYSTEM"', "3", "-1", "1.5"),
        *("true", "[]", '"1"', '" ROLE_USER"', "99999999999999999999"),
    ],
)
def test_other_roles_are_refused(alice: Caller, json_binding: str, role: str) -> None:
    echo = alice.at("echo", json_binding)
    for call in (echo.send, echo.stream):
        with alice.refused("INVALID_PARAMS", "message.role"):
            call(raw_message(role=role))


@pytest.mark.case("W28")
@pytest.mark.spec("5.6.1")
@pytest.mark.parametrize("slug", ["echo", "ask", "auth", "reject", "boom"])
def test_timestamps_are_utc_with_milliseconds(alice: Caller, binding: str, slug: str) -> None:
    peer = alice.at(slug, binding)
    task = peer.say("hi")
    for status in (task["status"], peer.get(task["id"])["status"], peer.list()["tasks"][0]["status"]):
        assert TIMESTAMP.fullmatch(status["timestamp"])


@pytest.mark.case("W28")
@pytest.mark.spec("5.6.1")
def test_timestamps_of_a_stream_are_utc_and_only_grow(alice: Caller, binding: str) -> None:
    with alice.at("steps", binding).say_streaming("steps 2 1") as stream:
        events = stream.rest()
    stamps = [e.response[e.kind]["status"]["timestamp"] for e in events if e.state]
    assert all(TIMESTAMP.fullmatch(stamp) for stamp in stamps)
    assert stamps == sorted(stamps)


@pytest.mark.case("W30")
@pytest.mark.spec("5.5")
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "nan", "01", "+1", ".5", "1.", "0x1", "'a'", "[1,]"])
def test_what_only_lenient_readers_take_is_no_json(alice: Caller, json_binding: str, value: str) -> None:
    data = alice.at("data", json_binding)
    for params in (raw_part(f'{{"data":{value}}}'), raw_message(metadata=f'{{"a":{value}}}')):
        with alice.nothing_stored():
            body = f'{{"jsonrpc":"2.0","id":"q1","method":"SendMessage","params":{params}}}'
            if json_binding == "jsonrpc":
                reply = alice.jsonrpc("data").post(body).json()
                assert (reply["error"]["code"], reply["id"]) == (-32700, None)
            else:
                with alice.refused("PARSE_ERROR"):
                    data.send(params)


@pytest.mark.case("W30")
@pytest.mark.spec("5.5")
@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", '{"a":[1e400]}', "9" * 400], ids=["1e999", "-1e999", "inside", "400 digits"]
)
def test_numbers_beyond_a_double_are_refused(alice: Caller, json_binding: str, value: str) -> None:
    data = alice.at("data", json_binding)
    with alice.refused("INVALID_PARAMS", "message.parts[0].data"):
        data.send(raw_part(f'{{"data":{value}}}'))
    with alice.refused("INVALID_PARAMS", "message.metadata"):
        data.send(raw_message(metadata=f'{{"a":{value}}}'))
    with alice.refused("INVALID_PARAMS", "metadata"):
        data.send(raw_message()[:-1] + f',"metadata":{{"a":{value}}}}}')


@pytest.mark.spec("5.5")
def test_white_space_and_order_do_not_count(alice: Caller, binding: str) -> None:
    params = json.dumps({"configuration": {}, "message": message("hi", contextId="c")}, indent=4).replace("\n", "\r\n")
    task = alice.at("echo", binding).send(params)["task"]
    assert task["artifacts"][0]["parts"] == [{"text": "hi"}]
