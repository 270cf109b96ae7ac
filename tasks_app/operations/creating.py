"""Taking a message in as the first one of a new task."""

from __future__ import annotations

import asyncio

from msgspec.json import encode

from protocol.ids import new_id
from protocol.states import TaskState
from protocol.timestamps import now
from tasks_app.execution.draft import heard
from tasks_app.journal import Creation
from tasks_app.operations.call import Call
from tasks_app.operations.deadlines import turn_deadline
from tasks_app.operations.incoming import Accepted, Incoming, repeated, start
from tasks_app.operations.keeping import keep_big_parts, or_discard
from tasks_app.push.config import sealed
from tasks_app.tables.record import HistoryEntry, TaskRecord, initial_status


async def create_task(call: Call, incoming: Incoming, metadata: str | None) -> Accepted:
    """Store a message as the first of a new task, and start that. `metadata` is what the task begins with."""
    message = incoming.request.message
    message.task_id = new_id()
    files = await keep_big_parts(call, message) if incoming.big else []
    message.context_id = message.context_id or new_id()
    at = now()
    entry = heard(message, 1, at)
    worker = call.host.origin if call.runs_here else None
    deadline_at = turn_deadline(call, at, incoming.deadline)
    record = TaskRecord(
        id=message.task_id,
        agent_id=call.entry.id,
        owner=call.caller.owner,
        context_id=message.context_id,
        state=TaskState.SUBMITTED,
        status=initial_status(at),
        status_at=at,
        created_at=at,
        message_count=1,
        worker=worker,
        request=encode(incoming.turn).decode(),
        deadline_at=deadline_at,
        history=[entry.body],
        metadata=metadata,
    )
    creation = _creation(call, record, entry, incoming)
    writing = call.host.journal.submit(creation)
    if await (or_discard(call, files, writing, used=bool) if incoming.big else writing):
        return start(call, record, incoming.request)
    return await repeated(call, incoming.acceptance)


def _creation(call: Call, record: TaskRecord, message: HistoryEntry, incoming: Incoming) -> Creation:
    config = incoming.push_config
    return Creation(
        task_id=record.id,
        agent_id=record.agent_id,
        owner=record.owner,
        context_id=record.context_id,
        status=record.status,
        created_at=record.created_at,
        message=message,
        dialect=call.dialect,
        request=record.request,
        worker=record.worker,
        acceptance=incoming.acceptance,
        done=asyncio.get_running_loop().create_future(),
        metadata=record.metadata,
        parent_id=call.parent_id,
        deadline_at=record.deadline_at,
        push_config=None if config is None else sealed(config, record.id, call.dialect, cursor=0),
        has_stored_parts=incoming.big,
    )
