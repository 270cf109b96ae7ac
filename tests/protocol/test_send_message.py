"""What SendMessage takes and refuses (cases W01 to W32, J18)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET

from protocol.codec import decode, encode
from protocol.errors import ParseError
from protocol.model import KEY_MAX, Message, Part, Role
from protocol.requests import SendMessageConfiguration, SendMessageRequest
from tests.protocol.support import printed, send, send_violations

CONTENTS = "text, raw, url, data"
NO_CONTENT = f"must have one of {CONTENTS}"


def sent(data: bytes) -> SendMessageRequest:
    return decode(SendMessageRequest, data)


def part_of(part: str) -> Any:
    """A part as it goes out again."""
    return printed(sent(send(part)))["message"]["parts"][0]


def test_reads_a_full_request() -> None:
    request = sent(
        b'{"tenant":"t","message":{"messageId":"m1","contextId":"c","taskId":"k","role":"ROLE_USER",'
        b'"parts":[{"text":"hi","filename":"f","mediaType":"text/plain"}],"extensions":["e"],"referenceTaskIds":["r"]},'
        b'"configuration":{"acceptedOutputModes":["text/plain"],"historyLength":0,"returnImmediately":true}}'
    )
    assert request == SendMessageRequest(
        tenant="t",
        message=Message(
            message_id="m1",
            context_id="c",
            task_id="k",
            role=Role.USER,
            parts=[Part(text="hi", filename="f", media_type="text/plain")],
            extensions=["e"],
            reference_task_ids=["r"],
        ),
        configuration=SendMessageConfiguration(
            accepted_output_modes=["text/plain"], history_length=0, return_immediately=True
        ),
    )


@pytest.mark.spec("4.1.4")
@pytest.mark.parametrize("id", ["msg-1", "x", "0193e2a4-7b1c-7000-8000-000000000001", "日本", "a b/c"])
def test_ids_are_any_text(id: str) -> None:
    assert sent(send(messageId=f'"{id}"')).message.message_id == id


@pytest.mark.spec("5.7")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"{}", [("message", "is required")]),
        (b'{"message":null}', [("message", "is required")]),
        (b'{"message":"hi"}', [("message", "must be an object")]),
        (
            b'{"message":{}}',
            [("message.messageId", "is required"), ("message.role", "is required"), ("message.parts", "is required")],
        ),
        (b'{"message":{"role":"ROLE_USER","parts":[{"text":"a"}]}}', [("message.messageId", "is required")]),
        (send(messageId='""'), [("message.messageId", "is required")]),
        (send(messageId="5"), [("message.messageId", "must be a string")]),
        (send(parts="[]"), [("message.parts", "must have at least one element")]),
        (send(parts="null"), [("message.parts", "is required")]),
        (send("null"), [("message.parts[0]", "must be an object")]),
        (send(parts='{"text":"a"}'), [("message.parts", "must be an array")]),
        (send('"hi"'), [("message.parts[0]", "must be an object")]),
        (send('{"text":5}'), [("message.parts[0].text", "must be a string")]),
        (send(extensions='"e"'), [("message.extensions", "must be an array")]),
        (send(extensions="[1]"), [("message.extensions[0]", "must be a string")]),
        (send(extensions="[null]"), [("message.extensions[0]", "must be a string")]),
        (send(metadata="[]"), [("message.metadata", "must be an object")]),
        (send(metadata='"x"'), [("message.metadata", "must be an object")]),
        (send('{"text":"a","metadata":1}'), [("message.parts[0].metadata", "must be an object")]),
        (b"[]", [("", "must be an object")]),
        (b'"x"', [("", "must be an object")]),
    ],
    ids=repr,
)
def test_refuses_missing_and_mistyped_fields(data: bytes, expected: list[tuple[str, str]]) -> None:
    assert send_violations(data) == expected


@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("{}", NO_CONTENT),
        ('{"mediaType":"text/plain"}', NO_CONTENT),
        ('{"metadata":{"a":1}}', NO_CONTENT),
        ('{"content":{"$case":"text","value":"x"}}', NO_CONTENT),
        ('{"text":null}', NO_CONTENT),
        ('{"text":"a","url":"https://e.test/f"}', f"must have only one of {CONTENTS}, got text, url"),
        ('{"text":"a","raw":"","url":""}', f"must have only one of {CONTENTS}, got text, raw, url"),
        ('{"url":"a","data":null}', f"must have only one of {CONTENTS}, got url, data"),
    ],
)
def test_a_part_has_exactly_one_content(part: str, expected: str) -> None:
    assert send_violations(send(part)) == [("message.parts[0]", expected)]
    assert send_violations(send('{"text":"ok"},' + part)) == [("message.parts[1]", expected)]


@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize(
    "part",
    [
        {"text": ""},
        {"text": "žluť 你好 😀"},
        {"text": "a\0b"},
        {"raw": ""},
        {"raw": "+/8=", "mediaType": "application/octet-stream"},
        {"url": ""},
        {"url": "not a url"},
        {"url": "https://e.test/f", "filename": "f.pdf"},
        {"data": None},
        {"data": True},
        {"data": "s"},
        {"data": [1, "x", None]},
        {"data": {"z": 0, "f": False, "s": "", "l": [], "o": {}, "n": None}},
        {"text": "a", "metadata": {}},
    ],
    ids=repr,
)
def test_content_comes_back_unchanged(part: dict[str, Any]) -> None:
    assert part_of(json.dumps(part)) == part
    assert part_of(json.dumps(part, ensure_ascii=False).replace("\0", "\\u0000")) == part


@pytest.mark.spec("14.1.1")
def test_text_leaves_as_utf_8() -> None:
    assert "žluť 你好 😀".encode() in encode(sent(send('{"text":"\\u017elu\\u0165 \\u4f60\\u597d \\ud83d\\ude00"}')))


@pytest.mark.spec("4.1.6")
@pytest.mark.parametrize(
    "value",
    [
        *("1", "1.0", "1.50", "-0", "1e2", "1E+2", "0.1", "9007199254740993", "123456789012345678901234567890"),
        '{"n":1,"list":[2,3.0]}',
        '{ "a" : [ 1 , 2 ] }',
        '{"b":1,"a":2,"b":3}',
        '"\\u00e9\\u0000"',
        "1" * 308,
        "1.7976931348623157e308",
    ],
)
def test_json_is_kept_as_it_came(value: str) -> None:
    for rest in ("", ',"kind":"data"'):
        request = sent(send(f'{{"data":{value}{rest}}}', metadata=f'{{"v":{value}}}'))
        data = request.message.parts[0].data
        metadata = request.message.metadata
        assert data is not UNSET
        assert metadata is not UNSET
        assert bytes(data) == value.encode()
        assert bytes(metadata) == f'{{"v":{value}}}'.encode()
        assert f'"data":{value}'.encode() in encode(request)


def test_json_leaves_on_one_line() -> None:
    # An event of a stream is a line.
    assert b"\n" not in encode(sent(send('{"data":{"a":\n1.0,\r\n"b":"x\\ny"}}')))
    assert part_of('{"data":{"a":\n1.0}}') == {"data": {"a": 1.0}}


@pytest.mark.parametrize("value", ["1e999", "-1e999", '{"a":[1e400]}', "1" * 309 + "0", "9" * 309, "1" * 5000])
@pytest.mark.spec("5.5")
def test_refuses_numbers_that_no_double_holds(value: str) -> None:
    expected = "holds a number out of range"
    assert send_violations(send(f'{{"data":{value}}}')) == [("message.parts[0].data", expected)]
    assert send_violations(send(metadata=f'{{"x":{value}}}')) == [("message.metadata", expected)]


def test_digits_in_a_text_are_no_number() -> None:
    assert part_of('{"data":"' + "9" * 400 + '"}') == {"data": "9" * 400}


@pytest.mark.parametrize(
    "data",
    [
        send('{"data":NaN}'),
        send('{"data":Infinity}'),
        send('{"data":"\xff"}').replace(b"\xc3\xbf", b"\xff"),
        send('{"text":"\xff"}').replace(b"\xc3\xbf", b"\xff"),
        send('{"text":"a","extra":"\xff"}').replace(b"\xc3\xbf", b"\xff"),
        send('{"data":"\ud7ff"}').replace(b"\xed\x9f\xbf", b"\xed\xa0\x80"),
        send('{"text":"a\nb"}'),
        send('{"text":"\\x"}'),
        send('{"data":01}'),
        send('{"data":[1,]}'),
        send() + b"x",
        b"\xef\xbb\xbf" + send(),
        b" ",
        b"{",
    ],
    ids=repr,
)
def test_refuses_what_is_not_json(data: bytes) -> None:
    with pytest.raises(ParseError):
        sent(data)


@pytest.mark.spec("14.1.1")
@pytest.mark.parametrize(
    ("part", "field"),
    [
        ('{"text":"x\\ud800y"}', "message.parts[0].text"),
        ('{"text":"x\\udc00"}', "message.parts[0].text"),
        ('{"text":"x\\ud800\\u0041yz"}', "message.parts[0].text"),
        ('{"text":"\\ud800"}', "message.parts[0].text"),
        ('{"data":{"a":["\\ud800"]}}', "message.parts[0].data.a[0]"),
        ('{"data":{"\\ud800":1}}', "message.parts[0].data"),
        ('{"text":"a","filename":"\\udfff"}', "message.parts[0].filename"),
    ],
)
def test_refuses_lone_surrogates(part: str, field: str) -> None:
    assert send_violations(send(part)) == [(field, "holds a lone surrogate")]


@pytest.mark.spec("4.1.5")
@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ('"user"', 'must be one of ROLE_USER, ROLE_AGENT, got "user"'),
        ('""', 'must be one of ROLE_USER, ROLE_AGENT, got ""'),
        ("3", "must be one of ROLE_USER, ROLE_AGENT, got 3"),
        ("-1", "must be one of ROLE_USER, ROLE_AGENT, got -1"),
        ("true", "must be one of ROLE_USER, ROLE_AGENT, got true"),
        ("0", "is required"),
        ('"ROLE_UNSPECIFIED"', "is required"),
        ("null", "is required"),
        ('"ROLE_AGENT"', "must be ROLE_USER in a message to an agent"),
        ("2", "must be ROLE_USER in a message to an agent"),
    ],
)
def test_refuses_other_roles(role: str, expected: str) -> None:
    assert send_violations(send(role=role)) == [("message.role", expected)]


@pytest.mark.parametrize(
    ("member", "field"),
    [
        ("messageId", "message.messageId"),
        ("contextId", "message.contextId"),
        ("taskId", "message.taskId"),
        ("referenceTaskIds", "message.referenceTaskIds[0]"),
    ],
)
def test_limits_the_ids(member: str, field: str) -> None:
    def data(id: str) -> bytes:
        value = f'"{id}"'
        return send(**{member: f"[{value}]" if member == "referenceTaskIds" else value})

    long = "é" * KEY_MAX
    assert long in encode(sent(data(long))).decode()
    assert send_violations(data(long + "x")) == [(field, "must have at most 255 characters, got 256")]
    assert send_violations(data("a\\u0000b")) == [(field, "must not hold U+0000")]


def test_refuses_an_empty_reference() -> None:
    assert send_violations(send(referenceTaskIds='["a",""]')) == [("message.referenceTaskIds[1]", "is required")]


def test_the_tenant_is_limited_too() -> None:
    assert send_violations(b'{"tenant":"a\\u0000",' + send()[1:]) == [("tenant", "must not hold U+0000")]


def test_collects_what_is_wrong() -> None:
    data = (
        b'{"message":{"role":"user","parts":[{},{"text":"a"},{"raw":"!"}]},'
        b'"configuration":{"historyLength":-1,"returnImmediately":"yes","taskPushNotificationConfig":{"taskId":"t"}}}'
    )
    assert send_violations(data) == [
        ("message.messageId", "is required"),
        ("message.role", 'must be one of ROLE_USER, ROLE_AGENT, got "user"'),
        ("message.parts[0]", NO_CONTENT),
        ("message.parts[2].raw", "must be base64"),
        ("configuration.taskPushNotificationConfig.url", "is required"),
        ("configuration.historyLength", "must be an integer from 0 to 2147483647, got -1"),
        ("configuration.returnImmediately", "must be true or false"),
        (
            "configuration.taskPushNotificationConfig.taskId",
            "must be empty: the task is the one of the message",
        ),
    ]


def test_stops_collecting_in_time() -> None:
    assert len(send_violations(send(",".join(["{}"] * 100_000)))) == 20


@pytest.mark.spec("3.2.2")
def test_takes_an_inline_push_config() -> None:
    config = '{"url":"HOOK","token":"t","authentication":{"scheme":"Bearer","credentials":"s3"}}'
    request = sent(send()[:-1] + b',"configuration":{"taskPushNotificationConfig":' + config.encode() + b"}}")
    assert printed(request)["configuration"] == {
        "taskPushNotificationConfig": {
            "url": "HOOK",
            "token": "t",
            "authentication": {"scheme": "Bearer", "credentials": "s3"},
        }
    }


@pytest.mark.spec("3.2.2")
@pytest.mark.parametrize(
    ("config", "field"),
    [
        ('{"url":"h","taskId":"t"}', "taskId"),
        ('{"taskId":""}', "url"),
        ('{"url":""}', "url"),
        ('{"url":"h","authentication":{}}', "authentication.scheme"),
    ],
)
def test_refuses_a_wrong_inline_push_config(config: str, field: str) -> None:
    data = send()[:-1] + b',"configuration":{"taskPushNotificationConfig":' + config.encode() + b"}}"
    assert [one for one, _ in send_violations(data)] == [f"configuration.taskPushNotificationConfig.{field}"]
