"""What callers are given of parts that are kept in files: their content or signed URLs, as the agent says."""

from __future__ import annotations

from protocol.model import Task, Wire
from protocol.stored_part import MARK
from tasks_app.content.links import own_url
from tasks_app.content.restoring import Policy, restored
from tasks_app.operations.call import Call
from tasks_app.tables.record import TaskRecord


async def with_contents(call: Call, kind: type[Wire], body: bytes, strict: bool = False) -> bytes:
    """JSON of a `kind` that is about to leave, with the content of its parts.

    What cannot be read now comes as a URL, unless `strict`: then it raises PartUnreadableError or StorageDownError,
    which name the task.
    """
    if MARK not in body:
        return body
    return await restored(kind, body, policy_of(call, strict))


def policy_of(call: Call, strict: bool = False) -> Policy:
    """How a caller is given the parts of an answer. Each answer has one of its own."""
    return Policy.of(call.entry.large_parts, call.find_base_url() or own_url(), strict)


async def rendered(
    call: Call, record: TaskRecord, history_length: int | None = None, artifacts: bool = True, strict: bool = False
) -> bytes:
    """A task as JSON (see `TaskRecord.render`) with the content of its parts."""
    return await with_contents(call, Task, record.render(history_length, artifacts), strict)
