"""When a turn of a task has to have ended: by its agent, by the task that delegated it, and by its caller."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from protocol.errors import InvalidParamsError, Violation
from protocol.requests import SendMessageRequest
from protocol.timestamps import parse_timestamp
from tasks_app.operations.call import Call

_FIELD = "metadata.deadline"


class _Metadata(Struct):
    deadline: Raw | UnsetType = UNSET


def asked_deadline(request: SendMessageRequest) -> datetime | None:
    """The `deadline` in a request's metadata, an RFC 3339 timestamp. Raises InvalidParamsError for anything else."""
    if request.metadata is UNSET:
        return None
    raw = msgspec.json.decode(request.metadata, type=_Metadata).deadline
    if raw is UNSET or bytes(raw) == b"null":
        return None
    try:
        return parse_timestamp(msgspec.json.decode(raw, type=str))
    except (msgspec.ValidationError, ValueError):
        text = "must be an RFC 3339 timestamp with an offset, such as 2030-01-02T03:04:05Z"
        raise InvalidParamsError([Violation(_FIELD, text)]) from None


def past_deadline() -> InvalidParamsError:
    """A deadline that nobody can keep."""
    return InvalidParamsError([Violation(_FIELD, "has passed already")])


def turn_deadline(call: Call, at: datetime, asked: datetime | None) -> datetime:
    """The earliest deadline of a turn that begins `at`."""
    end = at + timedelta(seconds=call.entry.deadline_seconds)
    for other in (call.deadline_at, asked):
        if other is not None and other < end:
            end = other
    return end
