"""Requests to try, by operation. The tests send each of them to a running host."""

from __future__ import annotations

from typing import Any

_MESSAGE = {"messageId": "9a4c7f10-6d0e-4f43-9d1c-0c6cbb2d3f5e", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}

EXAMPLES: dict[str, dict[str, Any]] = {
    "SendMessage": {"message": _MESSAGE},
    "SendStreamingMessage": {"message": _MESSAGE},
    "CancelTask": {},
    "SubscribeToTask": {},
    "CreateTaskPushNotificationConfig": {"url": "https://hooks.example.com/a2a", "token": "anything that you check"},
}
