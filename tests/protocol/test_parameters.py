"""Parameters of the other operations, in JSON and in query strings (cases H01 to H04, L03, L04, L09, R09, R15)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from protocol.codec import decode, decode_query
from protocol.model import Wire
from protocol.requests import (
    CancelTaskRequest,
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
)
from protocol.states import TaskState
from tests.protocol.support import printed, query_violations, violations

STATES = (
    "TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, "
    "TASK_STATE_INPUT_REQUIRED, TASK_STATE_REJECTED, TASK_STATE_AUTH_REQUIRED"
)
LENGTH = "must be an integer from 0 to 2147483647, got "
SIZE = "must be an integer from 1 to 100, got "
MOMENT = "must be a timestamp such as 2025-10-28T10:30:00.000Z, got "


@pytest.mark.spec("3.2.4")
@pytest.mark.parametrize(
    ("length", "expected"),
    [
        *(("0", 0), ("2", 2), ("2147483647", 2147483647), ('"2"', 2), ("2.0", 2), ("2e1", 20), ("null", None)),
        *(('"\\u0032"', 2), ("-0", 0), ("0.0", 0)),
    ],
)
def test_reads_history_length(length: str, expected: int | None) -> None:
    for rest in ("", ',"kind":"x"'):
        request = decode(GetTaskRequest, f'{{"id":"t","historyLength":{length}{rest}}}'.encode())
        assert request == GetTaskRequest(id="t", history_length=expected)


@pytest.mark.spec("3.2.4")
@pytest.mark.parametrize(
    "length",
    [
        *("-1", "2147483648", "1.5", '"1.5"', '"2.0"', '" 2"', '"+2"', '"٢"', '"1_0"', '""', "true", "[]", "{}"),
        *("1e400", "9" * 30, '"99999999999999999999"', '"x"'),
    ],
)
def test_refuses_other_history_lengths(length: str) -> None:
    data = f'{{"id":"t","historyLength":{length}}}'.encode()
    assert violations(GetTaskRequest, data) == [("historyLength", LENGTH + length)]


@pytest.mark.parametrize(
    ("kind", "data", "fields"),
    [
        (GetTaskRequest, b"{}", ["id"]),
        (GetTaskRequest, b'{"id":""}', ["id"]),
        (GetTaskRequest, b'{"id":"a\\u0000"}', ["id"]),
        (GetTaskRequest, b'{"id":"t","tenant":"\\u0000"}', ["tenant"]),
        (GetTaskRequest, b'{"id":"' + b"x" * 256 + b'"}', ["id"]),
        (CancelTaskRequest, b'{"id":5}', ["id"]),
        (CancelTaskRequest, b'{"id":"t","metadata":[]}', ["metadata"]),
        (SubscribeToTaskRequest, b"{}", ["id"]),
        (SubscribeToTaskRequest, b'{"id":"\\u0000"}', ["id"]),
        (GetExtendedAgentCardRequest, b'{"tenant":"\\u0000"}', ["tenant"]),
        (CreateTaskPushNotificationConfigRequest, b'{"url":""}', ["taskId", "url"]),
        (CreateTaskPushNotificationConfigRequest, b'{"taskId":"t","url":"u","id":"\\u0000"}', ["id"]),
        (GetTaskPushNotificationConfigRequest, b"{}", ["taskId", "id"]),
        (DeleteTaskPushNotificationConfigRequest, b'{"taskId":"t"}', ["id"]),
        (ListTaskPushNotificationConfigsRequest, b'{"pageSize":-1}', ["taskId", "pageSize"]),
    ],
)
def test_names_the_wrong_fields(kind: type[Wire], data: bytes, fields: list[str]) -> None:
    assert [field for field, _ in violations(kind, data)] == fields


@pytest.mark.spec("3.1.7")
def test_a_push_config_names_its_task() -> None:
    data = b'{"taskId":"T2","url":"https://h.test/","token":"t","authentication":{"scheme":"Bearer"}}'
    request = decode(CreateTaskPushNotificationConfigRequest, data, {"taskId": "T1"})
    assert printed(request) == {
        "taskId": "T1",
        "url": "https://h.test/",
        "token": "t",
        "authentication": {"scheme": "Bearer"},
    }


@pytest.mark.spec("3.1.4")
def test_reads_a_list_request() -> None:
    data = (
        b'{"contextId":"c","status":"TASK_STATE_WORKING","pageSize":"7","pageToken":"p","historyLength":0,'
        b'"statusTimestampAfter":"2025-10-28T12:30:00.5+02:00","includeArtifacts":true,"tenant":"t"}'
    )
    assert decode(ListTasksRequest, data) == ListTasksRequest(
        tenant="t",
        context_id="c",
        status=TaskState.WORKING,
        page_size=7,
        page_token="p",
        history_length=0,
        status_timestamp_after=datetime(2025, 10, 28, 10, 30, 0, 500_000, UTC),
        include_artifacts=True,
    )
    assert decode(ListTasksRequest, b"{}") == ListTasksRequest()


@pytest.mark.spec("3.1.4")
@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ('"pageSize":0', ("pageSize", SIZE + "0")),
        ('"pageSize":101', ("pageSize", SIZE + "101")),
        ('"pageSize":null,"page_size":5', ("pageSize", "is given twice, also as page_size")),
        ('"historyLength":-5', ("historyLength", LENGTH + "-5")),
        ('"status":"completed"', ("status", f'must be one of {STATES}, got "completed"')),
        ('"status":"TASK_STATE_RUNNING"', ("status", f'must be one of {STATES}, got "TASK_STATE_RUNNING"')),
        ('"status":9', ("status", f"must be one of {STATES}, got 9")),
        ('"includeArtifacts":"true"', ("includeArtifacts", "must be true or false")),
        ('"includeArtifacts":1', ("includeArtifacts", "must be true or false")),
        ('"statusTimestampAfter":"yesterday"', ("statusTimestampAfter", MOMENT + '"yesterday"')),
        ('"statusTimestampAfter":1', ("statusTimestampAfter", "must be a string")),
    ],
)
def test_refuses_wrong_list_parameters(member: str, expected: tuple[str, str]) -> None:
    assert violations(ListTasksRequest, b"{" + member.encode() + b"}") == [expected]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *(('"TASK_STATE_COMPLETED"', TaskState.COMPLETED), ("3", TaskState.COMPLETED), ("8", TaskState.AUTH_REQUIRED)),
        *(('"TASK_STATE_UNSPECIFIED"', None), ("0", None), ("null", None)),
    ],
)
def test_reads_states_by_name_and_number(status: str, expected: TaskState | None) -> None:
    assert decode(ListTasksRequest, f'{{"status":{status}}}'.encode()) == ListTasksRequest(status=expected)


@pytest.mark.spec("11.5")
@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], {}),
        (
            [("includeArtifacts", "true"), ("historyLength", "1"), ("contextId", "c+1")],
            {"include_artifacts": True, "history_length": 1, "context_id": "c+1"},
        ),
        (
            [("include_artifacts", "false"), ("page_size", "100"), ("page_token", "p")],
            {"include_artifacts": False, "page_size": 100, "page_token": "p"},
        ),
        ([("status", "TASK_STATE_COMPLETED")], {"status": TaskState.COMPLETED}),
        ([("status", "3")], {"status": TaskState.COMPLETED}),
        ([("status", "TASK_STATE_UNSPECIFIED")], {}),
        (
            [("statusTimestampAfter", "2025-11-09T10:30:00+01:00")],
            {"status_timestamp_after": datetime(2025, 11, 9, 9, 30, tzinfo=UTC)},
        ),
        ([("A2A-Version", "1.0"), ("x", "1"), ("x", "2"), ("pagesize", "no")], {}),
        ([("contextId", ""), ("pageToken", "")], {}),
        ([("contextId", 'a"b\\c\n')], {"context_id": 'a"b\\c\n'}),
        ([("contextId", "null")], {"context_id": "null"}),
    ],
)
def test_reads_query_strings(pairs: list[tuple[str, str]], expected: dict[str, Any]) -> None:
    assert decode_query(ListTasksRequest, pairs, {}) == ListTasksRequest(**expected)


@pytest.mark.spec("11.5")
@pytest.mark.parametrize(
    ("name", "value", "description"),
    [
        ("pageSize", "-1", SIZE + '"-1"'),
        ("pageSize", "abc", SIZE + '"abc"'),
        ("pageSize", "1.5", SIZE + '"1.5"'),
        ("pageSize", "2147483648", SIZE + '"2147483648"'),
        ("pageSize", "", SIZE + '""'),
        ("pageSize", "101", SIZE + '"101"'),
        ("historyLength", "-5", LENGTH + '"-5"'),
        ("status", "completed", f'must be one of {STATES}, got "completed"'),
        ("status", "", f'must be one of {STATES}, got ""'),
        ("status", "-1", f'must be one of {STATES}, got "-1"'),
        ("status", "9" * 50, f'must be one of {STATES}, got "{"9" * 36}...'),
        ("includeArtifacts", "True", "must be true or false"),
        ("includeArtifacts", "1", "must be true or false"),
        ("statusTimestampAfter", "2025-11-09", MOMENT + '"2025-11-09"'),
        ("contextId", "a\0", "must not hold U+0000"),
        ("contextId", "\ud800", "holds a lone surrogate"),
        ("contextId", "x" * 256, "must have at most 255 characters, got 256"),
    ],
)
def test_refuses_wrong_query_values(name: str, value: str, description: str) -> None:
    assert query_violations(ListTasksRequest, [(name, value)]) == [(name, description)]


@pytest.mark.spec("6.5")
def test_collects_wrong_query_values() -> None:
    pairs = [("pageSize", "150"), ("historyLength", "-5"), ("status", "TASK_STATE_RUNNING")]
    assert query_violations(ListTasksRequest, pairs) == [
        ("status", f'must be one of {STATES}, got "TASK_STATE_RUNNING"'),
        ("pageSize", SIZE + '"150"'),
        ("historyLength", LENGTH + '"-5"'),
    ]


@pytest.mark.parametrize("pairs", [[("pageSize", "1"), ("pageSize", "1")], [("pageSize", "1"), ("page_size", "2")]])
def test_refuses_a_repeated_parameter(pairs: list[tuple[str, str]]) -> None:
    assert query_violations(ListTasksRequest, pairs) == [("pageSize", "is given more than once")]


@pytest.mark.parametrize("id", ["a/b", "你", "a b", "none:subscribe", "%2F"])
def test_path_values_are_any_text(id: str) -> None:
    request = decode_query(GetTaskRequest, [("id", "other"), ("historyLength", "2")], {"id": id, "tenant": "acme"})
    assert request == GetTaskRequest(id=id, tenant="acme", history_length=2)


@pytest.mark.parametrize(
    ("id", "description"),
    [
        *(("", "is required"), ("a\0b", "must not hold U+0000"), ("\udcff", "holds a lone surrogate")),
        ("x" * 256, "must have at most 255 characters, got 256"),
    ],
)
def test_refuses_path_values_that_are_no_id(id: str, description: str) -> None:
    found = query_violations(GetTaskRequest, [], {"id": id})
    assert found[0] == ("id", description)


def test_reads_the_push_config_requests() -> None:
    path = {"taskId": "t", "id": "c"}
    assert decode_query(GetTaskPushNotificationConfigRequest, [], path) == GetTaskPushNotificationConfigRequest(
        task_id="t", id="c"
    )
    assert decode_query(
        ListTaskPushNotificationConfigsRequest, [("pageSize", "5"), ("pageToken", "p")], {"task_id": "t"}
    ) == ListTaskPushNotificationConfigsRequest(task_id="t", page_size=5, page_token="p")
