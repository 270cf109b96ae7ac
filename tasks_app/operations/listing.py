"""ListTasks (§3.1.4): newest status first, by keyset: a page costs the same however many tasks there are.

So does their number, but for queries with a context or a time: it is counted once, for the first page of a walk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.core import signing

from protocol.errors import InvalidParamsError, Violation
from protocol.requests import ListTasksRequest
from protocol.states import TaskState
from tasks_app.operations.call import Call
from tasks_app.tables.record import TaskRecord, quote
from tasks_app.tables.rows import TASK_COLUMNS, task_record

DEFAULT_PAGE_SIZE = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# Indexes: task_list (agent, owner, -status_at, -id), and the same with context_id or state before status_at.
_PAGE = f"""SELECT {TASK_COLUMNS} FROM tasks_app_task t WHERE t.agent_id = %s AND t.owner = %s AND t.state <> 0
    {{filters}} ORDER BY t.status_at DESC, t.id DESC LIMIT %s"""
_COUNT = """SELECT coalesce(sum(tasks), 0)::bigint FROM tasks_app_taskcount
    WHERE agent_id = %s AND owner = %s AND state = ANY(%s)"""
_COUNT_FILTERED = """SELECT count(*) FROM tasks_app_task t
    WHERE t.agent_id = %s AND t.owner = %s AND t.state <> 0 {filters}"""
_SALT = "a2a.ListTasks"
_LISTED = [s.number for s in TaskState if s is not TaskState.UNSPECIFIED]


class _Place(NamedTuple):
    """Where the page before ended; `total_size` of the walk, if it was counted."""

    status_at: datetime
    id: str
    total_size: int | None


class _Signer(signing.TimestampSigner):
    """Tokens as `signing.dumps` makes them: they end in the time, which nobody asks for. A number of tasks stands there
    instead, below zero, so that the version before, which knows nothing of it, reads the token all the same."""

    def __init__(self, total: int | None = None) -> None:
        super().__init__(salt=_SALT)
        self._total = total

    def timestamp(self) -> str:
        """What a token ends in."""
        return super().timestamp() if self._total is None else signing.b62_encode(-1 - self._total)

    def total_of(self, token: str) -> int | None:
        """The number of tasks in a token that was signed, None for a time."""
        number = signing.b62_decode(token.rsplit(self.sep, 2)[1])
        return -1 - number if number < 0 else None


@dataclass(slots=True)
class TaskPage:
    """A ListTasksResponse."""

    records: list[TaskRecord]
    next_page_token: str
    page_size: int
    total_size: int
    history_length: int
    include_artifacts: bool

    def payload(self) -> bytes:
        """The ListTasksResponse as JSON; `artifacts` only where they were asked for."""
        tasks = b",".join(r.render(self.history_length, self.include_artifacts) for r in self.records)
        token = quote(self.next_page_token)
        tail = f'],"nextPageToken":{token},"pageSize":{self.page_size},"totalSize":{self.total_size}}}'
        return b'{"tasks":[' + tasks + tail.encode()


async def list_tasks(call: Call, request: ListTasksRequest) -> TaskPage:
    """One page of the caller's tasks. `historyLength` unset gives no history in lists.

    Raises InvalidParamsError for a page token that was not made for this caller and these filters. Anonymous callers
    who do not share a history have none.
    """
    size = request.page_size or DEFAULT_PAGE_SIZE
    place = _read_token(call, request) if request.page_token else None
    if call.is_stranger:
        return TaskPage([], "", size, 0, 0, request.include_artifacts)
    filters, values = _filters(request)
    counted = place.total_size if place is not None else None
    total = await _total(call, request, filters, values) if counted is None else counted
    rows = await _page_rows(call, filters, values, place, size + 1)
    records = [task_record(row) for row in rows[:size]]
    token = _make_token(call, request, records[-1], total) if len(rows) > size else ""
    if request.history_length or request.include_artifacts:
        records = await _with_contents(call, records, bool(request.history_length), request.include_artifacts)
    return TaskPage(records, token, size, total, request.history_length or 0, request.include_artifacts)


def _filters(request: ListTasksRequest) -> tuple[str, list[Any]]:
    sql = ""
    values: list[Any] = []
    if request.context_id:
        sql += " AND t.context_id = %s"
        values.append(request.context_id)
    if request.status is not None and request.status is not TaskState.UNSPECIFIED:
        sql += " AND t.state = %s"
        values.append(request.status.number)
    if request.status_timestamp_after is not None:
        sql += " AND t.status_at >= %s"
        values.append(request.status_timestamp_after)
    return sql, values


async def _total(call: Call, request: ListTasksRequest, filters: str, values: Sequence[Any]) -> int:
    """Exact. From counters for all tasks or one state; narrower filters count what they name."""
    scope = [call.entry.id, call.caller.owner]
    if _is_counted(request):
        rows = await call.host.store.query(_COUNT_FILTERED.format(filters=filters), [*scope, *values])
    else:
        rows = await call.host.store.query(_COUNT, [*scope, list(values) or _LISTED])
    return int(rows[0][0])


def _is_counted(request: ListTasksRequest) -> bool:
    """Whether no counter knows how many tasks a query finds."""
    return bool(request.context_id) or request.status_timestamp_after is not None


async def _page_rows(
    call: Call, filters: str, values: Sequence[Any], place: _Place | None, limit: int
) -> list[tuple[Any, ...]]:
    beyond = " AND (t.status_at, t.id) < (%s, %s)" if place else ""
    parameters = [call.entry.id, call.caller.owner, *values, *(place[:2] if place else ()), limit]
    return await call.host.store.query(_PAGE.format(filters=filters + beyond), parameters)


async def _with_contents(call: Call, records: list[TaskRecord], history: bool, artifacts: bool) -> list[TaskRecord]:
    ids = [r.id for r in records]
    full = await call.host.store.load_many(ids, history=history, artifacts=artifacts)
    return [full[i] for i in ids if i in full]


def _make_token(call: Call, request: ListTasksRequest, last: TaskRecord, total: int) -> str:
    position = [(last.status_at - _EPOCH) // _MICROSECOND, last.id, _binding(call, request)]
    return _Signer(total if _is_counted(request) else None).sign_object(position)


def _read_token(call: Call, request: ListTasksRequest) -> _Place:
    signer = _Signer()
    try:
        microseconds, task_id, binding = signer.unsign_object(request.page_token)
    except signing.BadSignature:
        raise InvalidParamsError([Violation("pageToken", "is not a token of this server")]) from None
    if binding != _binding(call, request):
        raise InvalidParamsError([Violation("pageToken", "was made for another query")])
    return _Place(_EPOCH + microseconds * _MICROSECOND, task_id, signer.total_of(request.page_token))


def _binding(call: Call, request: ListTasksRequest) -> str:
    """What a token is good for: this agent, this caller, these filters."""
    query = [
        call.entry.id,
        call.caller.owner,
        request.context_id,
        request.status,
        request.status_timestamp_after and request.status_timestamp_after.isoformat(),
    ]
    return hashlib.sha256(repr(query).encode()).hexdigest()[:16]
