"""Area wire, parts: one content each, returned as it came (§4.1.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.reading import raw_message, raw_part
from tests.support.callers import Caller


def returned_parts(caller: Caller, binding: str, parts: str) -> str:
    """The JSON text of the parts that the `data` agent returns, cut from the reply as it came."""
    peer = caller.at("data", binding)
    params = raw_message(parts)
    if binding == "jsonrpc":
        body = caller.jsonrpc("data").post(f'{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{params}}}').text
    else:
        body = caller.rest("data").ask("POST", "/message:send", params).text
    assert "TASK_STATE_COMPLETED" in body, body
    start = body.index('"parts":', body.index('"artifacts":')) + len('"parts":')
    _, length = json.JSONDecoder().raw_decode(body[start:])
    (task,) = peer.list(includeArtifacts=True)["tasks"]
    assert task["artifacts"][0]["parts"] == json.loads(body[start : start + length])
    return body[start : start + length]


@pytest.mark.case("W07")
@pytest.mark.case("W08")
@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize(
    "part",
    [
        "{}",
        '{"mediaType":"text/plain"}',
        '{"filename":"a.txt"}',
        '{"metadata":{"a":1}}',
        '{"metadata":{}}',
        '{"content":{"$case":"text","value":"x"}}',
        '{"text":null}',
        '{"text":null,"url":null,"raw":null}',
        '{"file":{"uri":"https://e.test/f"}}',
        '{"Text":"hi"}',
    ],
)
def test_a_part_has_content(alice: Caller, json_binding: str, part: str) -> None:
    echo = alice.at("data", json_binding)
    with alice.refused("INVALID_PARAMS", "message.parts[0]"):
        echo.send(raw_part(part))
    with alice.refused("INVALID_PARAMS", "message.parts[1]"):
        echo.send(raw_message(f'[{{"text":"hi"}},{part}]'))


@pytest.mark.case("W09")
@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize(
    "part",
    [
        '{"text":"a","url":"https://e.test/f"}',
        '{"text":"a","raw":"AAA="}',
        '{"text":"a","data":{}}',
        '{"text":"a","data":null}',
        '{"raw":"AAA=","url":"https://e.test/f"}',
        '{"url":"https://e.test/f","data":[]}',
        '{"text":"","url":""}',
        '{"text":"a","raw":"AAA=","url":"u","data":1}',
    ],
)
def test_a_part_has_one_content_only(alice: Caller, json_binding: str, part: str) -> None:
    data = alice.at("data", json_binding)
    for call in (data.send, data.stream):
        with alice.refused("INVALID_PARAMS", "message.parts[0]"):
            call(raw_part(part))


@pytest.mark.case("W09")
@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize(
    "part",
    [
        '{"text":"a","url":null}',
        '{"text":"a","raw":null,"mediaType":null,"filename":null,"metadata":null}',
        '{"text":""}',
        '{"url":""}',
    ],
)
def test_null_is_no_content_and_an_empty_text_is_one(alice: Caller, binding: str, part: str) -> None:
    kept = {name: value for name, value in json.loads(part).items() if value is not None}
    assert json.loads(returned_parts(alice, binding, f"[{part}]")) == [kept]


DATA = [
    '[1,"x",null]',
    "true",
    "false",
    "null",
    '"s"',
    '""',
    "0",
    "{}",
    "[]",
    "[[],{}]",
    '{"z":0,"f":false,"s":"","l":[],"o":{},"n":null}',
    '{"n":1,"list":[2,3]}',
    '{"a":1.0,"b":1e3,"c":-0.0,"d":9007199254740993,"e":123456789012345678901234567890,"f":0.1,"g":1E-7}',
    '{"":"","a b":1,"ž":"你","__proto__":1,"$ref":"#"}',
    '"\\u0000\\u001f\\u2028"',
    '{"deep":' + "[" * 60 + "]" * 60 + "}",
]


@pytest.mark.case("W17")
@pytest.mark.case("W19")
@pytest.mark.case("W32")
@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize("data", DATA, ids=lambda data: data[:30])
def test_data_comes_back_byte_for_byte(alice: Caller, json_binding: str, data: str) -> None:
    assert returned_parts(alice, json_binding, f'[{{"data":{data}}}]') == f'[{{"data":{data}}}]'


@pytest.mark.case("W17")
@pytest.mark.spec("4.1.6")
def test_parts_keep_their_order_and_their_members(alice: Caller, binding: str) -> None:
    parts = (
        '[{"data":[1,"x",null]},{"text":"a","metadata":{"n":1,"x":[]}},{"data":true,"mediaType":"application/json"},'
        '{"raw":"+/8=","filename":"a.bin","mediaType":"application/octet-stream"},{"url":"https://e.test/f?a=b#c"}]'
    )
    assert json.loads(returned_parts(alice, binding, parts)) == json.loads(parts)


@pytest.mark.case("W19")
@pytest.mark.spec("3.2.5")
def test_numbers_of_metadata_stay_as_they_came(alice: Caller) -> None:
    metadata = '{"n":1,"big":9007199254740993,"f":1.0,"l":[2,3]}'
    body = alice.rest("echo").ask("POST", "/message:send", raw_message(metadata=metadata)).text
    assert f'"metadata":{metadata}' in body


@pytest.mark.case("W21")
@pytest.mark.spec("5.5")
@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("+/8=", "+/8="),
        ("-_8", "+/8="),
        ("-_8=", "+/8="),
        ("+/8", "+/8="),
        ("", ""),
        ("AA==", "AA=="),
        ("AA", "AA=="),
        ("aGVsbG8", "aGVsbG8="),
        ("____", "////"),
        ("+_8=", "+/8="),
    ],
)
def test_every_base64_is_printed_as_the_standard_one(alice: Caller, binding: str, given: str, printed: str) -> None:
    part = f'[{{"raw":"{given}","mediaType":"application/octet-stream"}}]'
    assert json.loads(returned_parts(alice, binding, part)) == [
        {"raw": printed, "mediaType": "application/octet-stream"}
    ]


@pytest.mark.case("W21")
@pytest.mark.spec("5.5")
@pytest.mark.parametrize("raw", ['"A"', '"AAA=A"', '"A==="', '"!!!!"', '"AA AA"', '"AA\\nAA"', '"ž"', "5", "[1]", "{}"])
def test_what_is_no_base64_is_refused(alice: Caller, json_binding: str, raw: str) -> None:
    with alice.refused("INVALID_PARAMS", "message.parts[0].raw"):
        alice.at("data", json_binding).send(raw_part(f'{{"raw":{raw}}}'))


@pytest.mark.case("W32")
@pytest.mark.spec("3.2.5")
def test_metadata_of_message_and_part_come_back_with_all_members(alice: Caller, binding: str) -> None:
    empty: dict[str, Any] = {"z": 0, "f": False, "s": "", "l": [], "o": {}, "n": None}
    data = alice.at("data", binding)
    task = data.say([{"text": "a", "metadata": empty}], metadata=empty)
    (stored,) = data.get(task["id"])["history"]
    assert stored["metadata"] == empty
    assert stored["parts"] == [{"text": "a", "metadata": empty}]
