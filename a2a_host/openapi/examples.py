"""Requests to try, by version and operation. The tests send each of them to a running host."""

from __future__ import annotations

from typing import Any

_MESSAGE = {"messageId": "9a4c7f10-6d0e-4f43-9d1c-0c6cbb2d3f5e", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}

_CONFIG = {"url": "https://hooks.example.com/a2a", "token": "anything that you check"}
_MESSAGE_V03 = _MESSAGE | {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "Hello"}]}

_V1: dict[str, Any] = {
    "SendMessage": {"message": _MESSAGE},
    "SendStreamingMessage": {"message": _MESSAGE},
    "CancelTask": {},
    "SubscribeToTask": {},
    "CreateTaskPushNotificationConfig": _CONFIG,
}
_V0_3: dict[str, Any] = {
    "SendMessage": {"message": _MESSAGE_V03},
    "SendStreamingMessage": {"message": _MESSAGE_V03},
    "CancelTask": {},
    "SubscribeToTask": {},
    "CreateTaskPushNotificationConfig": {"config": {"pushNotificationConfig": _CONFIG}},
}
EXAMPLES: dict[str, dict[str, Any]] = {"1.0": _V1, "0.3": _V0_3}
