"""Putting the content of stored parts back, or a signed URL in its place, in what is about to leave the host.

Works on rendered JSON: whatever renders a task, a message or an event, one test tells whether there is anything to do.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from agents.models.agent import Agent
from protocol import codec
from protocol.errors import InternalError
from protocol.model import (
    Artifact,
    ListTasksResponse,
    Message,
    Part,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatus,
    TaskStatusUpdateEvent,
    Wire,
)
from protocol.stored_part import MARK, Held, StoredPart, stored_part
from tasks_app.content import storage
from tasks_app.content.links import file_url
from tasks_app.content.threads import in_thread

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Wire)

INLINE_MAX = 256 * 1024 * 1024
"""Bytes of files that one answer holds; what is beyond comes as signed URLs, whatever the policy."""
_DATA_TYPE = "application/json"


class PartUnreadableError(InternalError):
    """The content of a part of the task is gone."""

    def __init__(self, task_id: str, part_id: str) -> None:
        super().__init__(metadata={"taskId": task_id, "file": part_id})


@dataclass(slots=True)
class Policy:
    """How parts are given: `by_url` says whether as signed URLs below `base_url`.

    With `strict` a file that cannot be read is an error; otherwise its part comes as a URL, and all else with it.
    """

    by_url: bool
    base_url: str
    strict: bool = False
    left: int = field(default=INLINE_MAX)

    @classmethod
    def of(cls, large_parts: str, base_url: str, strict: bool = False) -> Policy:
        """The policy of an agent."""
        return cls(large_parts == Agent.LargeParts.URL, base_url, strict)


async def restored(kind: type[Wire], body: bytes, policy: Policy) -> bytes:
    """JSON of a `kind` with the content of its parts. Raises PartUnreadableError, StorageDownError if it is strict."""
    return await in_thread(lambda: restore(kind, body, policy)) if MARK in body else body


def restore(kind: type[Wire], body: bytes, policy: Policy) -> bytes:
    """The same; it blocks."""
    if MARK not in body:
        return body
    value = codec.load(kind, body)
    for task_id, holder in _holders(value):
        for part in holder.parts:
            stored = stored_part(part)
            if stored is not None:
                _put_back(part, stored, policy, task_id)
    return codec.encode(value)


def fill(messages_and_tasks: Iterable[Wire]) -> None:
    """Put content back into structs for an agent's code: files as `Held` bytes, nothing by URL. It blocks.

    Raises FileGoneError, StorageDownError.
    """
    for value in messages_and_tasks:
        for _, holder in _holders(value):
            for part in holder.parts:
                stored = stored_part(part)
                if stored is not None:
                    content = storage.read(stored.id)
                    if stored.kind == "raw":
                        part.raw = Held(content)
                    else:
                        _set(part, stored.kind, content)


def has_stored(values: Iterable[Wire]) -> bool:
    """Whether `fill` has anything to do."""
    return any(stored_part(part) is not None for v in values for _, holder in _holders(v) for part in holder.parts)


def _put_back(part: Part, stored: StoredPart, policy: Policy, task_id: str) -> None:
    """Data stays data: a URL would be another kind of part, which says nothing of its type."""
    if (policy.by_url and stored.kind != "data") or stored.size > policy.left:
        _set_url(part, stored, policy)
        return
    try:
        content = storage.read(stored.id)
    except storage.FileGoneError:
        logger.error("The file of part %s of task %s is gone", stored.id, task_id)
        if policy.strict:
            raise PartUnreadableError(task_id, stored.id) from None
        _set_url(part, stored, policy)
    except storage.StorageDownError as error:
        if policy.strict:
            error.metadata["taskId"] = task_id
            raise
        _set_url(part, stored, policy)
    else:
        policy.left -= stored.size
        if stored.kind == "raw":
            # As JSON already: no string, and no search for what has to be escaped.
            part.raw = cast(Any, Raw(b'"%b"' % b64encode(content)))
        else:
            _set(part, stored.kind, content)


def _set(part: Part, kind: str, content: bytes) -> None:
    part.raw = msgspec.UNSET
    if kind == "text":
        part.text = content.decode()
    else:
        part.data = Raw(content)


def _set_url(part: Part, stored: StoredPart, policy: Policy) -> None:
    part.raw = msgspec.UNSET
    part.url = file_url(policy.base_url, stored.id)
    if not part.media_type and stored.kind != "raw":
        part.media_type = _DATA_TYPE if stored.kind == "data" else "text/plain"


Holder = Message | Artifact


def _holders(value: Any) -> Iterator[tuple[str, Holder]]:
    """(task id, message or artifact) of everything in a struct that has parts."""
    match value:
        case Message():
            yield value.task_id, value
        case Artifact():
            yield "", value
        case TaskStatus():
            if isinstance(value.message, Message):
                yield value.message.task_id, value.message
        case Task():
            holders: tuple[Holder, ...] = (*value.history, *value.artifacts, *_said(value.status))
            for holder in holders:
                yield value.id, holder
        case TaskStatusUpdateEvent():
            for said in _said(value.status):
                yield value.task_id, said
        case TaskArtifactUpdateEvent():
            yield value.task_id, value.artifact
        case ListTasksResponse():
            for task in value.tasks:
                yield from _holders(task)
        case SendMessageResponse():
            yield from _holders(value.task)
            yield from _holders(value.message)
        case StreamResponse():
            for inner in (value.task, value.message, value.status_update, value.artifact_update):
                yield from _holders(inner)


def _said(status: TaskStatus) -> tuple[Message, ...]:
    return (status.message,) if isinstance(status.message, Message) else ()
