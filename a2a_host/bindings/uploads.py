"""Reading messages however big they are: big base64 stays in the bytes that were received until it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from django.conf import settings
from msgspec import Raw

from protocol.dialects import Dialect, drafts
from protocol.dialects.task_rest import TaskMessage
from protocol.lifting import read_lifted
from protocol.model import Wire
from protocol.requests import SendMessageRequest

T = TypeVar("T", bound=Wire)


def read_request(
    dialect: Dialect, kind: type[T], data: bytes | Raw | None, path: Mapping[str, str] | None = None
) -> tuple[T, Dialect]:
    """See `protocol.dialects.drafts.read_request`."""
    if data is None or len(data) <= settings.STORED_PART_BYTES or kind is not SendMessageRequest:
        return drafts.read_request(dialect, kind, data, path)

    def read(text: bytes | Raw) -> tuple[T, Dialect]:
        return drafts.read_request(dialect, kind, text, path)

    return read_lifted(data, settings.STORED_PART_BYTES, read, lambda found: cast(SendMessageRequest, found[0]))


def read_task_message(data: bytes, read: Callable[[bytes], TaskMessage]) -> TaskMessage:
    """What `read` makes of a message in the task REST dialect."""
    if len(data) <= settings.STORED_PART_BYTES:
        return read(data)
    return read_lifted(data, settings.STORED_PART_BYTES, read, lambda found: found.request)
