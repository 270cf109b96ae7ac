"""Valid requests of every operation, binding and version, which the fuzzer then spoils."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

_METADATA = {"n": 1.5, "deep": {"list": [1, "two", None]}}
# An address that is refused when it is saved, so that nothing is ever delivered.
_URL = "http://127.0.0.1:9/hook"


def message() -> Document:
    """A message of 1.0 with everything in it. Its id is replaced by each request's own."""
    return {
        "messageId": "m",
        "contextId": "context-of-the-fuzzer",
        "role": "ROLE_USER",
        "parts": [
            {"text": "hello"},
            {"data": {"k": [1, 2.5, "x"]}, "mediaType": "application/json", "metadata": {"a": 1}},
            {"raw": "AAECAw==", "filename": "a.bin", "mediaType": "application/octet-stream"},
            {"url": "https://files.example.com/a", "mediaType": "text/plain"},
        ],
        "metadata": _METADATA,
        "extensions": ["https://example.com/ext/1"],
        "referenceTaskIds": [],
    }


def send() -> Document:
    """Parameters of SendMessage."""
    configuration = {"acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": False}
    return {"tenant": "", "message": message(), "configuration": configuration, "metadata": {"m": True}}


def config() -> Document:
    """A push notification config of 1.0."""
    authentication = {"scheme": "Bearer", "credentials": "c"}
    return {"id": "config", "url": _URL, "token": "t", "authentication": authentication}


V1: dict[str, Document] = {
    "SendMessage": send(),
    "SendStreamingMessage": send(),
    "GetTask": {"id": "no-task", "historyLength": 1},
    "ListTasks": {
        "contextId": "c",
        "status": "TASK_STATE_WORKING",
        "pageSize": 5,
        "pageToken": "",
        "historyLength": 0,
        "statusTimestampAfter": "2025-10-28T10:30:00.000Z",
        "includeArtifacts": True,
    },
    "CancelTask": {"id": "no-task", "metadata": {}},
    "SubscribeToTask": {"id": "no-task"},
    "CreateTaskPushNotificationConfig": {"taskId": "no-task"} | config(),
    "GetTaskPushNotificationConfig": {"taskId": "no-task", "id": "config"},
    "ListTaskPushNotificationConfigs": {"taskId": "no-task", "pageSize": 3, "pageToken": ""},
    "DeleteTaskPushNotificationConfig": {"taskId": "no-task", "id": "config"},
    "GetExtendedAgentCard": {},
}


def message_v03() -> Document:
    """A message of 0.3."""
    return {
        "kind": "message",
        "messageId": "m",
        "contextId": "context-of-the-fuzzer",
        "role": "user",
        "parts": [
            {"kind": "text", "text": "hello"},
            {"kind": "data", "data": {"k": [1, 2.5, "x"]}, "metadata": {"a": 1}},
            {"kind": "file", "file": {"bytes": "AAECAw==", "name": "a.bin", "mimeType": "application/octet-stream"}},
            {"kind": "file", "file": {"uri": "https://files.example.com/a", "mimeType": "text/plain"}},
        ],
        "metadata": _METADATA,
        "extensions": ["https://example.com/ext/1"],
        "referenceTaskIds": [],
    }


def send_v03() -> Document:
    """Parameters of message/send."""
    configuration = {"acceptedOutputModes": ["text/plain"], "historyLength": 3, "blocking": True}
    return {"message": message_v03(), "configuration": configuration, "metadata": {"m": True}}


def config_v03() -> Document:
    """A push notification config of 0.3."""
    authentication = {"schemes": ["Bearer"], "credentials": "c"}
    return {"id": "config", "url": _URL, "token": "t", "authentication": authentication}


V0_3: dict[str, Document] = {
    "message/send": send_v03(),
    "message/stream": send_v03(),
    "tasks/get": {"id": "no-task", "historyLength": 1},
    "tasks/cancel": {"id": "no-task", "metadata": {}},
    "tasks/resubscribe": {"id": "no-task"},
    "tasks/pushNotificationConfig/set": {"taskId": "no-task", "pushNotificationConfig": config_v03()},
    "tasks/pushNotificationConfig/get": {"id": "no-task", "pushNotificationConfigId": "config"},
    "tasks/pushNotificationConfig/list": {"id": "no-task"},
    "tasks/pushNotificationConfig/delete": {"id": "no-task", "pushNotificationConfigId": "config"},
    "agent/getAuthenticatedExtendedCard": {},
}


def send_proto_v03() -> Document:
    """The body of /v1/message:send in the JSON of the 0.3 protobuf definition."""
    parts = [
        {"text": "hello"},
        {"data": {"data": {"k": [1, 2.5]}}},
        {"file": {"fileWithBytes": "AAECAw==", "mimeType": "application/octet-stream", "name": "a.bin"}},
        {"file": {"fileWithUri": "https://files.example.com/a", "mimeType": "text/plain"}},
    ]
    sent = {"messageId": "m", "contextId": "context-of-the-fuzzer", "role": "ROLE_USER", "content": parts}
    return {"message": sent, "configuration": {"blocking": True, "historyLength": 2}, "metadata": {"m": True}}


# (HTTP method, path below the agent, body or None) of HTTP+JSON.
REST_V1: list[tuple[str, str, Document | None]] = [
    ("POST", "/message:send", send()),
    ("POST", "/message:send", send()),
    ("POST", "/message:stream", send()),
    ("GET", "/tasks", None),
    ("GET", "/tasks/no-task", None),
    ("POST", "/tasks/no-task:cancel", {"metadata": {}}),
    ("POST", "/tasks/no-task:subscribe", {}),
    ("GET", "/tasks/no-task:subscribe", None),
    ("POST", "/tasks/no-task/pushNotificationConfigs", config()),
    ("GET", "/tasks/no-task/pushNotificationConfigs", None),
    ("GET", "/tasks/no-task/pushNotificationConfigs/config", None),
    ("DELETE", "/tasks/no-task/pushNotificationConfigs/config", None),
    ("GET", "/extendedAgentCard", None),
    ("GET", "/.well-known/agent-card.json", None),
]
REST_V0_3: list[tuple[str, str, Document | None]] = [
    ("POST", "/v1/message:send", send_v03()),
    ("POST", "/v1/message:send", send_proto_v03()),
    ("POST", "/v1/message:stream", send_proto_v03()),
    ("GET", "/v1/tasks/no-task", None),
    ("POST", "/v1/tasks/no-task:cancel", {}),
    ("POST", "/v1/tasks/no-task:subscribe", {}),
    ("GET", "/v1/tasks/no-task:subscribe", None),
    ("POST", "/v1/tasks/no-task/pushNotificationConfigs", {"config": {"pushNotificationConfig": config_v03()}}),
    ("GET", "/v1/tasks/no-task/pushNotificationConfigs", None),
    ("GET", "/v1/tasks/no-task/pushNotificationConfigs/config", None),
    ("DELETE", "/v1/tasks/no-task/pushNotificationConfigs/config", None),
    ("GET", "/v1/card", None),
]
_TYPED_PARTS = [
    {"type": "text", "text": "hello"},
    {"type": "file", "file": {"name": "a.pdf", "mimeType": "application/pdf", "bytes": "JVBERi0xLjQ="}},
]
_CREATE = {
    "message": {"role": "user", "parts": _TYPED_PARTS},
    "sessionId": "session-of-the-fuzzer",
    "metadata": {"priority": "high", "deadline": "2025-01-15T10:00:00Z"},
}
_CREATE_WITH_HOOK = _CREATE | {"metadata": {"callback_url": _URL}}
# The task REST dialect (docs/dialects.md).
TASK_REST: list[tuple[str, str, Document | None]] = [
    ("POST", "/tasks", _CREATE),
    ("POST", "/tasks", _CREATE),
    ("POST", "/tasks", _CREATE_WITH_HOOK),
    ("GET", "/tasks/no-task", None),
    ("POST", "/tasks/no-task/cancel", {}),
    ("GET", "/tasks/no-task/artifacts", None),
    ("POST", "/tasks/no-task/messages", {"message": {"role": "user", "parts": _TYPED_PARTS}}),
    ("GET", "/tasks/no-task/stream", None),
    ("GET", "/.well-known/agent.json", None),
]
QUERY_NAMES = (
    *("tenant", "contextId", "context_id", "status", "pageSize", "page_size", "pageToken", "historyLength"),
    *("statusTimestampAfter", "includeArtifacts", "A2A-Version", "id", "taskId", "metadata", "unknown"),
)

GRPC_V0_3: dict[str, Document] = {
    "SendMessage": send_proto_v03(),
    "SendStreamingMessage": send_proto_v03(),
    "GetTask": {"name": "tasks/no-task", "historyLength": 1},
    "CancelTask": {"name": "tasks/no-task"},
    "TaskSubscription": {"name": "tasks/no-task"},
    "CreateTaskPushNotificationConfig": {
        "parent": "tasks/no-task",
        "configId": "config",
        "config": {"name": "tasks/no-task/pushNotificationConfigs/config", "pushNotificationConfig": config_v03()},
    },
    "GetTaskPushNotificationConfig": {"name": "tasks/no-task/pushNotificationConfigs/config"},
    "ListTaskPushNotificationConfig": {"parent": "tasks/no-task", "pageSize": 2},
    "DeleteTaskPushNotificationConfig": {"name": "tasks/no-task/pushNotificationConfigs/config"},
    "GetAgentCard": {},
}
