"""Responses in the three forms of 0.3, byte for byte."""

from __future__ import annotations

import pytest
from msgspec import json

from protocol.dialects.v03 import V0_3, V0_3_PROTO, V0_3_WRAPPED, V03
from protocol.model import (
    ListTaskPushNotificationConfigsResponse,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskPushNotificationConfig,
    Wire,
)
from protocol.states import TERMINAL, TaskState

TASK = (
    b'{"id":"t","contextId":"c","status":{"state":"TASK_STATE_CANCELED","message":{"messageId":"a","role":"ROLE_AGENT",'
    b'"parts":[{"text":"ok","mediaType":"text/plain"}]},"timestamp":"2025-10-28T10:30:00.000Z"},'
    b'"artifacts":[{"artifactId":"x","name":"n","parts":[{"raw":"aGk=","filename":"a.txt","mediaType":"text/plain"}],'
    b'"extensions":["e"]}],"history":[{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"n":1.50}}],'
    b'"metadata":{"k": 1e2}}],"metadata":{"z":0}}'
)
OLD_TASK = (
    b'{"kind":"task","id":"t","contextId":"c","status":{"state":"canceled","message":{"kind":"message","messageId":"a",'
    b'"role":"agent","parts":[{"kind":"text","text":"ok"}]},"timestamp":"2025-10-28T10:30:00.000Z"},'
    b'"artifacts":[{"artifactId":"x","name":"n","parts":[{"kind":"file","file":{"bytes":"aGk=","mimeType":"text/plain",'
    b'"name":"a.txt"}}],"extensions":["e"]}],"history":[{"kind":"message","messageId":"m","role":"user",'
    b'"parts":[{"kind":"data","data":{"n":1.50}}],"metadata":{"k": 1e2}}],"metadata":{"z":0}}'
)
PROTO_TASK = (
    b'{"id":"t","contextId":"c","status":{"state":"TASK_STATE_CANCELLED","message":{"messageId":"a",'
    b'"role":"ROLE_AGENT","content":[{"text":"ok"}]},"timestamp":"2025-10-28T10:30:00.000Z"},'
    b'"artifacts":[{"artifactId":"x","name":"n","parts":[{"file":{"fileWithBytes":"YUdrPQ==","mimeType":"text/plain",'
    b'"name":"a.txt"}}],"extensions":["e"]}],"history":[{"messageId":"m","role":"ROLE_USER",'
    b'"content":[{"data":{"data":{"n":1.50}}}],"metadata":{"k": 1e2}}],"metadata":{"z":0}}'
)
MESSAGE = b'{"messageId":"m","role":"ROLE_AGENT","parts":[{"url":"u"}],"contextId":"c"}'
OLD_MESSAGE = (
    b'{"kind":"message","messageId":"m","contextId":"c","role":"agent","parts":[{"kind":"file","file":{"uri":"u"}}]}'
)
PROTO_MESSAGE = b'{"messageId":"m","contextId":"c","role":"ROLE_AGENT","content":[{"file":{"fileWithUri":"u"}}]}'
CONFIG = b'{"id":"p","taskId":"t","url":"u","token":"k","authentication":{"scheme":"Bearer"}}'
OLD_CONFIG = (
    b'{"taskId":"t","pushNotificationConfig":{"id":"p","url":"u","token":"k","authentication":{"schemes":["Bearer"]}}}'
)
PROTO_CONFIG = OLD_CONFIG.replace(b'"taskId":"t"', b'"name":"tasks/t/pushNotificationConfigs/p"')
ARTIFACT = b'{"taskId":"t","contextId":"c","artifact":{"artifactId":"x","parts":[{"text":"a"}]},"append":true}'
OLD_ARTIFACT = (
    b'{"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{"artifactId":"x",'
    b'"parts":[{"kind":"text","text":"a"}]},"append":true}'
)


@pytest.mark.parametrize(
    ("kind", "body", "bare", "wrapped", "proto"),
    [
        (Task, TASK, OLD_TASK, OLD_TASK, PROTO_TASK),
        (
            SendMessageResponse,
            b'{"task":%b}' % TASK,
            OLD_TASK,
            b'{"task":%b}' % OLD_TASK,
            b'{"task":%b}' % PROTO_TASK,
        ),
        (
            SendMessageResponse,
            b'{"message":%b}' % MESSAGE,
            OLD_MESSAGE,
            b'{"message":%b}' % OLD_MESSAGE,
            b'{"message":%b}' % PROTO_MESSAGE,
        ),
        (
            StreamResponse,
            b'{"artifactUpdate":%b}' % ARTIFACT,
            OLD_ARTIFACT,
            b'{"artifactUpdate":%b}' % OLD_ARTIFACT,
            b'{"artifactUpdate":%b}' % ARTIFACT,
        ),
        (TaskPushNotificationConfig, CONFIG, OLD_CONFIG, OLD_CONFIG, PROTO_CONFIG),
        (
            ListTaskPushNotificationConfigsResponse,
            b'{"configs":[%b]}' % CONFIG,
            b"[%b]" % OLD_CONFIG,
            b"[%b]" % OLD_CONFIG,
            b'{"configs":[%b]}' % PROTO_CONFIG,
        ),
        (ListTaskPushNotificationConfigsResponse, b'{"configs":[]}', b"[]", b"[]", b"{}"),
        (Wire, b"{}", b"null", b"{}", b"{}"),
    ],
)
def test_what_is_sent(kind: type[Wire], body: bytes, bare: bytes, wrapped: bytes, proto: bytes) -> None:
    assert V0_3.write(kind, body) == bare
    assert V0_3_WRAPPED.write(kind, body) == wrapped
    assert V0_3_PROTO.write(kind, body) == proto


STATES = {
    "SUBMITTED": ("submitted", "SUBMITTED"),
    "WORKING": ("working", "WORKING"),
    "COMPLETED": ("completed", "COMPLETED"),
    "FAILED": ("failed", "FAILED"),
    "CANCELED": ("canceled", "CANCELLED"),
    "INPUT_REQUIRED": ("input-required", "INPUT_REQUIRED"),
    "REJECTED": ("rejected", "REJECTED"),
    "AUTH_REQUIRED": ("auth-required", "AUTH_REQUIRED"),
}


@pytest.mark.parametrize("name", STATES)
def test_states_and_what_is_final(name: str) -> None:
    body = b'{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_%b"}}}' % name.encode()
    final = TaskState[name] in TERMINAL or name == "INPUT_REQUIRED"
    old, proto = STATES[name]
    assert json.decode(V0_3.write(StreamResponse, body)) == {
        "kind": "status-update",
        "taskId": "t",
        "contextId": "c",
        "status": {"state": old},
        "final": final,
    }
    assert json.decode(V0_3_PROTO.write(StreamResponse, body)) == {
        "statusUpdate": {
            "taskId": "t",
            "contextId": "c",
            "status": {"state": f"TASK_STATE_{proto}"},
            "final": final,
        }
    }


@pytest.mark.parametrize(
    ("part", "old"),
    [
        (b'{"data":[1, 2]}', b'{"kind":"data","data":{"value":[1, 2]},"metadata":{"data_part_compat":true}}'),
        (b'{"data":null}', b'{"kind":"data","data":{"value":null},"metadata":{"data_part_compat":true}}'),
        (
            b'{"data":"x","metadata":{"a":1.0}}',
            b'{"kind":"data","data":{"value":"x"},"metadata":{"a":1.0,"data_part_compat":true}}',
        ),
    ],
)
def test_data_that_is_no_object_is_wrapped_as_the_sdk_does(part: bytes, old: bytes) -> None:
    body = b'{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[%b]}}' % part
    assert V0_3.write(SendMessageResponse, body) == (
        b'{"kind":"message","messageId":"m","role":"agent","parts":[%b]}' % old
    )


@pytest.mark.parametrize("dialect", [V0_3, V0_3_WRAPPED, V0_3_PROTO])
def test_all_forms_are_the_same_version(dialect: V03) -> None:
    assert dialect.version == "0.3"
