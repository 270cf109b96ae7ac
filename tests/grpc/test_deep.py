"""JSON at the border of what protobuf can carry, at every place of an answer."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import msgspec
import pytest
from google.protobuf.message import DecodeError, EncodeError

from a2a_host.bindings.grpc import service_v03, service_v1
from a2a_host.bindings.grpc.convert_out import message_of
from a2a_host.bindings.grpc.deep import AS_TEXT, LEVELS, flattened
from protocol.model import (
    ListTasksResponse,
    Message,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    Wire,
)

Json = dict[str, Any]
SERVICES: dict[str, Any] = {"1.0": service_v1, "0.3": service_v03}
METHODS = {
    Task: "GetTask",
    ListTasksResponse: "ListTasks",
    SendMessageResponse: "SendMessage",
    StreamResponse: "SendStreamingMessage",
}


def nested(levels: int) -> Any:
    """Objects in objects: the form that takes most messages of protobuf."""
    value: Any = "x"
    for _ in range(levels):
        value = {"v": value}
    return value


def answers(levels: int) -> list[tuple[type[Wire], Json]]:
    """Every answer that holds JSON of callers and agents, with so many levels at each place."""
    deep = nested(levels)
    part = {"data": deep, "metadata": deep}
    message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [part], "metadata": deep}
    artifact = {"artifactId": "a", "parts": [part], "metadata": deep}
    status = {"state": "TASK_STATE_WORKING", "message": message}
    task = {"id": "t", "contextId": "c", "status": status, "artifacts": [artifact], "history": [message]}
    task["metadata"] = deep
    event = {"taskId": "t", "contextId": "c", "metadata": deep}
    page = {"tasks": [task], "nextPageToken": "", "pageSize": 1, "totalSize": 1}
    return [
        (Task, task),
        (ListTasksResponse, page),
        (SendMessageResponse, {"task": task}),
        (SendMessageResponse, {"message": message}),
        *((StreamResponse, {name: value}) for name, value in (("task", task), ("message", message))),
        (StreamResponse, {"statusUpdate": event | {"status": status}}),
        (StreamResponse, {"artifactUpdate": event | {"artifact": artifact}}),
    ]


def written(version: str, kind: type[Wire], body: bytes) -> bytes:
    """What a service sends for an answer. Raises EncodeError and DecodeError."""
    service = SERVICES[version]
    rpc = service.METHODS[METHODS[kind]]
    members = rpc.shape(msgspec.json.decode(service.DIALECT.write(kind, body)))
    data: bytes = message_of(rpc.response, members).SerializeToString()
    assert rpc.response.FromString(data).ByteSize() == len(data)  # what reads it has the same limit
    return data


CASES = [
    (version, number)
    for version, service in SERVICES.items()
    for number, (kind, _) in enumerate(answers(1))
    if METHODS[kind] in service.METHODS
]


@pytest.mark.parametrize(("version", "number"), CASES)
def test_as_many_levels_as_are_promised_fit_everywhere(version: str, number: int) -> None:
    kind, answer = answers(LEVELS)[number]
    body = json.dumps(answer).encode()
    written(version, kind, body)
    assert json.loads(flattened(kind, body)) == answer


@pytest.mark.parametrize("levels", [LEVELS + 1, LEVELS + 4, 100])
@pytest.mark.parametrize(("version", "number"), CASES)
def test_what_is_deeper_fits_once_it_is_flat(version: str, number: int, levels: int) -> None:
    kind, answer = answers(levels)[number]
    body = json.dumps(answer).encode()
    if levels > LEVELS + 1:
        with pytest.raises((EncodeError, DecodeError)):
            written(version, kind, body)
    written(version, kind, flattened(kind, body))


def test_nothing_is_lost() -> None:
    deep = nested(40)
    given = (
        b'{"messageId":"m","role":"ROLE_USER","parts":[{"data":%b,"filename":"f"},{"data":[1.50]},{"text":"t"}],'
        b'"metadata":{"flat": 1.50,"deep":%b}}'
    )
    text = json.dumps(deep, indent=1).encode()
    flat = json.loads(flattened(Message, given % (text, text)), parse_float=str)
    first, *others = flat["parts"]
    assert first.keys() == {"raw", "filename", "mediaType"}
    assert (b64decode(first["raw"]), first["mediaType"]) == (text, "application/json")
    assert others == [{"data": ["1.50"]}, {"text": "t"}]
    assert flat["metadata"] == {"flat": "1.50", AS_TEXT: {"deep": text.decode()}}


def test_a_media_type_stays() -> None:
    part = {"data": nested(40), "mediaType": "application/geo+json"}
    event = {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": [part]}}
    flat = json.loads(flattened(TaskArtifactUpdateEvent, json.dumps(event).encode()))
    assert flat["artifact"]["parts"][0]["mediaType"] == "application/geo+json"


def test_metadata_that_was_flat_before() -> None:
    """What was read over gRPC and sent back, beside what is deep again."""
    metadata = {AS_TEXT: {"deep": "{}"}, "deeper": nested(40)}
    task = {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "metadata": metadata}
    flat = json.loads(flattened(Task, json.dumps(task).encode()))
    assert flat["metadata"].keys() == {AS_TEXT}
    assert {name: json.loads(text) for name, text in flat["metadata"][AS_TEXT].items()} == metadata
