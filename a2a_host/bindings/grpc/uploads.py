"""Big bytes in protobuf messages, which are stored as they are and never written as base64."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from a2a_host.freed_memory import give_back_soon
from protocol.model import Wire
from protocol.requests import SendMessageRequest
from protocol.stored_part import Held


def read_held(message: Message, size: int, kind: type[Wire], read: Callable[[], Wire]) -> Wire:
    """What `read` makes of a message of `size` bytes; big bytes of its parts are `Held` in it. Raises the same."""
    if size <= settings.STORED_PART_BYTES or kind is not SendMessageRequest:
        return read()
    give_back_soon()
    held = {b64encode(token).decode(): content for token, content in _take_out(message, settings.STORED_PART_BYTES)}
    request: Any = read()
    for part in request.message.parts:
        if part.raw in held:
            part.raw = Held(held[part.raw])
    return request  # type: ignore[no-any-return]


def _take_out(message: Message, limit: int) -> Iterator[tuple[bytes, bytes]]:
    """(what is there now, what was there) for each field of more than `limit` bytes. In A2A only parts have bytes."""
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for inner in value if field.is_repeated else [value]:
                yield from _take_out(inner, limit)
        elif field.type == FieldDescriptor.TYPE_BYTES and len(value) > limit:
            token = os.urandom(24)
            setattr(message, field.name, token)
            yield token, value
