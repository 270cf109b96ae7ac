"""Requests in the JSON of 0.3: what is taken, and how a refusal names the field."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, Raw

from protocol import protojson
from protocol.dialects.v03 import V0_3, V0_3_PROTO, V0_3_WRAPPED, V03, http_form
from protocol.dialects.v03.dialect import READINGS
from protocol.errors import InvalidParamsError, ParseError
from protocol.model import AuthenticationInfo, Message, Part, Role, TaskPushNotificationConfig, Wire
from protocol.requests import (
    CancelTaskRequest,
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
)

FILE = b'{"kind":"file","file":{"bytes":"aGk=","mimeType":"text/plain","name":"a.txt"}}'


def send(parts: bytes = b'[{"kind":"text","text":"hi"}]', members: bytes = b"", rest: bytes = b"") -> bytes:
    return b'{"message":{"kind":"message","messageId":"m","role":"user","parts":%b%b}%b}' % (parts, members, rest)


def violations(kind: type[Wire], body: bytes, dialect: V03 = V0_3) -> list[tuple[str, str]]:
    with pytest.raises(InvalidParamsError) as refused:
        dialect.read(kind, body)
    return [(one.field, one.description) for one in refused.value.violations]


def test_a_message_with_all_that_it_may_hold() -> None:
    body = send(
        b'[{"kind":"text","text":"hi","metadata":{"n":1.50}},{"kind":"data","data":{"a":1e2}},' + FILE + b","
        b'{"kind":"file","file":{"uri":"https://x/y"}}]',
        b',"contextId":"c","taskId":"t","referenceTaskIds":["r"],"extensions":["e"],"metadata":{"x":null}',
        b',"configuration":{"acceptedOutputModes":["text/plain"],"blocking":false,"historyLength":2,'
        b'"pushNotificationConfig":{"id":"p","url":"https://h","token":"k",'
        b'"authentication":{"schemes":["Bearer","Basic"],"credentials":"s"}}},"metadata":{"y":2}',
    )
    assert V0_3.read(SendMessageRequest, body) == SendMessageRequest(
        message=Message(
            message_id="m",
            role=Role.USER,
            parts=[
                Part(text="hi", metadata=Raw(b'{"n":1.50}')),
                Part(data=Raw(b'{"a":1e2}')),
                Part(raw="aGk=", media_type="text/plain", filename="a.txt"),
                Part(url="https://x/y"),
            ],
            context_id="c",
            task_id="t",
            reference_task_ids=["r"],
            extensions=["e"],
            metadata=Raw(b'{"x":null}'),
        ),
        configuration=SendMessageConfiguration(
            accepted_output_modes=["text/plain"],
            return_immediately=True,
            history_length=2,
            task_push_notification_config=TaskPushNotificationConfig(
                id="p",
                url="https://h",
                token="k",
                authentication=AuthenticationInfo(scheme="Bearer", credentials="s"),
            ),
        ),
        metadata=Raw(b'{"y":2}'),
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"message":{"messageId":"m","role":"user","parts":[{"text":"hi"}]}}',
        b'{"message":{"message_id":"m","role":"user","parts":[{"text":"hi","type":"text"}],"x":{"y":[1]}},"tenant":"a"}',
        send(members=b',"contextId":null,"extensions":[],"metadata":null', rest=b',"configuration":null'),
    ],
)
def test_spellings_of_the_same_message(body: bytes) -> None:
    assert V0_3.read(SendMessageRequest, body) == V0_3.read(SendMessageRequest, send())


@pytest.mark.parametrize(
    ("configuration", "immediately", "length"),
    [
        (b"{}", False, None),
        (b'{"blocking":true}', False, None),
        (b'{"blocking":false}', True, None),
        (b'{"historyLength":0}', False, None),
        (b'{"historyLength":7}', False, 7),
    ],
)
def test_configurations(configuration: bytes, immediately: bool, length: int | None) -> None:
    request = V0_3.read(SendMessageRequest, send(rest=b',"configuration":' + configuration))
    assert request.configuration == SendMessageConfiguration(return_immediately=immediately, history_length=length)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"[]", [("", "must be an object")]),
        (b"{}", [("message", "is required")]),
        (send(b"[]"), [("message.parts", "must have at least one element")]),
        (send().replace(b'"user"', b'"ROLE_USER"'), [("message.role", 'must be one of user, agent, got "ROLE_USER"')]),
        (send().replace(b'"user"', b'""'), [("message.role", 'must be one of user, agent, got ""')]),
        (send().replace(b'"user"', b"1"), [("message.role", "must be one of user, agent, got 1")]),
        (send().replace(b'"user"', b'"agent"'), [("message.role", "must be user in a message to an agent")]),
        (send().replace(b'"message",', b'"task",'), [("message.kind", "must be message, got task")]),
        (
            send(b'[{"kind":"image","text":"x"}]'),
            [("message.parts[0].kind", "must be text or file or data, got image")],
        ),
        (send(b'[{"kind":"file","text":"x"}]'), [("message.parts[0].file", "is required in a part of kind file")]),
        (
            send(b'[{"text":"x","data":{}}]'),
            [("message.parts[0]", "must have only one of text, file, data, got text, data")],
        ),
        (send(b'[{"kind":"data","data":[1]}]'), [("message.parts[0].data", "must be an object")]),
        (
            send(b'[{"kind":"file","file":{"bytes":"a","mimeType":1}}]'),
            [
                ("message.parts[0].file.bytes", "must be base64"),
                ("message.parts[0].file.mimeType", "must be a string"),
            ],
        ),
        (
            send(b'[{"kind":"file","file":{"name":"a"}}]'),
            [("message.parts[0].file", "must have one of bytes, uri")],
        ),
        (send(members=b',"contextId":"a\\u0000"'), [("message.contextId", "must not hold U+0000")]),
        (send(members=b',"messageId":"m"'), [("message.messageId", "is given more than once")]),
        (send(b'[{"text":"a","text":"a"}]'), [("message.parts[0].text", "is given more than once")]),
        (send(b'[{"text":"\\ud800"}]'), [("message.parts[0].text", "holds a lone surrogate")]),
        (
            send(rest=b',"configuration":{"historyLength":-1}'),
            [("configuration.historyLength", "must be an integer from 0 to 2147483647, got -1")],
        ),
        (
            send(rest=b',"configuration":{"pushNotificationConfig":{"token":"t"}}'),
            [("configuration.pushNotificationConfig.url", "is required")],
        ),
        (
            send(
                rest=b',"configuration":{"pushNotificationConfig":'
                b'{"url":"u","authentication":{"schemes":[],"credentials":"c"}}}'
            ),
            [("configuration.pushNotificationConfig.authentication.schemes", "must have at least one element")],
        ),
    ],
)
def test_refusals_name_the_fields_of_0_3(body: bytes, found: list[tuple[str, str]]) -> None:
    assert violations(SendMessageRequest, body) == found


@pytest.mark.parametrize("body", [b"{", b'{"message":' + b"[" * 200 + b"]" * 200 + b"}", b'{"a":"\xff"}'])
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(ParseError):
        V0_3.read(SendMessageRequest, body)


NO_ID = b'{"metadata":{}}'


@pytest.mark.parametrize(
    ("body", "request_", "missing"),
    [
        (b'{"id":"t","historyLength":3}', GetTaskRequest(id="t", history_length=3), "id"),
        (b'{"id":"t","metadata":{"a":1}}', CancelTaskRequest(id="t", metadata=Raw(b'{"a":1}')), "id"),
        (b'{"id":"t"}', SubscribeToTaskRequest(id="t"), "id"),
        (
            b'{"taskId":"t","pushNotificationConfig":{"url":"u"}}',
            CreateTaskPushNotificationConfigRequest(task_id="t", url="u"),
            "taskId",
        ),
        (
            b'{"id":"t","pushNotificationConfigId":"c"}',
            GetTaskPushNotificationConfigRequest(task_id="t", id="c"),
            "id",
        ),
        (b'{"id":"t"}', GetTaskPushNotificationConfigRequest(task_id="t", id=""), "id"),
        (b'{"id":"t"}', ListTaskPushNotificationConfigsRequest(task_id="t"), "id"),
        (
            b'{"id":"t","pushNotificationConfigId":"c"}',
            DeleteTaskPushNotificationConfigRequest(task_id="t", id="c"),
            "id",
        ),
    ],
)
def test_requests_about_tasks(body: bytes, request_: Wire, missing: str) -> None:
    assert V0_3.read(type(request_), body) == request_
    assert (missing, "is required") in violations(type(request_), NO_ID)


def test_the_extended_card_has_no_parameters() -> None:
    assert V0_3.read(GetExtendedAgentCardRequest, b"{}") == GetExtendedAgentCardRequest()


BODIES = [
    send(),
    send(b'[{"kind":"data","data":{"a":[1,{"b":"\\"c"}]},"metadata":{"d":"e"}}]', rest=b',"metadata":{}'),
    send(rest=b',"configuration":{"acceptedOutputModes":[],"blocking":true}'),
    send(members=b',"extensions":["a"],"referenceTaskIds":["b"],"metadata":{"a":{"b":{}}}'),
]


@pytest.mark.parametrize("body", BODIES)
def test_the_usual_spelling_is_read_once_and_like_any_other(body: bytes) -> None:
    reading = READINGS[SendMessageRequest]
    plain = reading._plain(body)
    assert plain is not None
    assert plain == protojson.read(reading.params, body, check=reading.check)


@pytest.mark.parametrize(
    "body",
    [
        send(FILE.join([b"[", b"]"])),
        send(members=b',"contextId":"c","contextId":"c"'),
        send(members=b',"metadata":{},"metadata":{}'),
        send(members=b',"metadata":[]'),
        send(members=b',"metadata":{"a":1e999}'),
        send(members=b',"unknown":1'),
        send(b'[{"text":"\\u0000"}]'),
    ],
)
def test_anything_else_is_looked_at_twice(body: bytes) -> None:
    assert READINGS[SendMessageRequest]._plain(body) is None


PROTO = b'{"message":{"messageId":"m","role":"ROLE_USER","content":%b}%b}'


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (b'{"text":"hi"}', Part(text="hi")),
        (b'{"data":{"data":{"a":1.0}}}', Part(data=Raw(b'{"a":1.0}'))),
        (b'{"file":{"fileWithUri":"u","mimeType":"a/b","name":"n"}}', Part(url="u", media_type="a/b", filename="n")),
        (b'{"file":{"file_with_bytes":"YUdrPQ==","mime_type":"a/b"}}', Part(raw="aGk=", media_type="a/b")),
        (b'{"file":{"fileWithBytes":"aGk="}}', Part(raw="aGk=")),  # "hi" is no base64 text
        (b'{"file":{"fileWithBytes":"/w=="}}', Part(raw="/w==")),
        (b'{"data":{"data":{"value":[1]}},"metadata":{"data_part_compat":true,"a":1}}',
         Part(data=Raw(b"[1]"), metadata=Raw(b'{"a":1}'))),
    ],
)  # fmt: skip
def test_parts_of_the_protobuf_form(part: bytes, expected: Part) -> None:
    request = V0_3_PROTO.read(SendMessageRequest, PROTO % (b"[" + part + b"]", b""))
    assert request.message.parts == [expected]
    assert request.configuration is UNSET


@pytest.mark.parametrize(
    ("configuration", "immediately"),
    [(b"{}", True), (b'{"blocking":false}', True), (b'{"blocking":true,"historyLength":0}', False)],
)
def test_protobuf_cannot_leave_blocking_open(configuration: bytes, immediately: bool) -> None:
    body = PROTO % (b'[{"text":"hi"}]', b',"configuration":' + configuration)
    request = V0_3_PROTO.read(SendMessageRequest, body)
    assert request.configuration == SendMessageConfiguration(return_immediately=immediately)


def test_refusals_name_the_fields_of_the_protobuf_form() -> None:
    body = b'{"message":{"role":"ROLE_AGENT","content":[{"file":{}}]}}'
    assert violations(SendMessageRequest, body, V0_3_PROTO) == [
        ("message.messageId", "is required"),
        ("message.content[0].file", "must have one of fileWithUri, fileWithBytes"),
        ("message.role", "must be ROLE_USER in a message to an agent"),
    ]


CONFIG = CreateTaskPushNotificationConfigRequest(task_id="t", id="c", url="u")


@pytest.mark.parametrize(
    "body",
    [
        b'{"parent":"tasks/t","configId":"c","config":{"name":"x","pushNotificationConfig":{"url":"u"}}}',
        b'{"parent":"tasks/t","config":{"push_notification_config":{"id":"c","url":"u","authentication":{}}}}',
        b'{"name":"x","pushNotificationConfig":{"id":"c","url":"u"}}',
        b'{"config":{"taskId":"other","pushNotificationConfig":{"id":"c","url":"u"}}}',
        b'{"taskId":"other","pushNotificationConfig":{"id":"c","url":"u"}}',
    ],
)
def test_configs_over_http_are_for_the_task_of_the_path(body: bytes) -> None:
    for dialect in (V0_3_PROTO, V0_3_WRAPPED):
        assert dialect.read(CreateTaskPushNotificationConfigRequest, body, {"taskId": "t"}) == CONFIG


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (send(), V0_3_WRAPPED),
        (PROTO % (b"[]", b""), V0_3_PROTO),
        (b'{"request":{"content":[]}}', V0_3_PROTO),
        (b'{"taskId":"t","pushNotificationConfig":{}}', V0_3_WRAPPED),
        (b'{"config":{"taskId":"t"}}', V0_3_WRAPPED),
        (b'{"name":"tasks/t","config":{}}', V0_3_PROTO),
        (b"", V0_3_PROTO),
        (b"[1]", V0_3_PROTO),
    ],
)
def test_the_body_says_which_form_it_is_in(body: bytes, form: V03) -> None:
    assert http_form(body) is form


def test_values_of_a_query() -> None:
    pairs: Any = [("historyLength", "0"), ("x", "y")]
    assert V0_3_PROTO.read_query(GetTaskRequest, pairs, {"id": "t"}) == GetTaskRequest(id="t")
    assert V0_3_PROTO.read_query(GetTaskRequest, [("history_length", "2")], {"id": "t"}) == GetTaskRequest(
        id="t", history_length=2
    )
