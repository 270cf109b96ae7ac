"""Claims on running tasks: who holds them, until when, and whose time is over.

A lease is not part of a task's version: extending it makes nobody's write stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings

from protocol.states import RUNNING
from tasks_app.store import Store

_RUNNING = ", ".join(str(s.number) for s in sorted(RUNNING))

_EXTEND = f"""UPDATE tasks_app_task t SET lease_until = now() + %s
    FROM unnest(%s::text[], %s::int[]) AS i(id, attempt)
    WHERE t.id = i.id AND t.attempt = i.attempt AND t.state IN ({_RUNNING}) RETURNING t.id"""
_EXPIRED = f"""SELECT id FROM tasks_app_task
    WHERE state IN ({_RUNNING}) AND lease_until < now() ORDER BY lease_until LIMIT %s"""
_RING_AGAIN = f"""UPDATE tasks_app_task SET lease_until = now() + %s
    WHERE id = ANY(%s) AND worker IS NULL AND state IN ({_RUNNING}) AND lease_until < now() RETURNING id, attempt"""
_REQUEST_CANCEL = f"""WITH asked AS (
        UPDATE tasks_app_task SET cancel_requested_at = coalesce(cancel_requested_at, now())
        WHERE id = %s AND attempt = %s AND state IN ({_RUNNING}) RETURNING id)
    SELECT pg_notify(%s, id) FROM asked"""

CONTROL_CHANNEL = "a2a_cancel"

LEASE = timedelta(seconds=settings.LEASE_SECONDS)
"""How long a run may be silent before its process counts as dead. Extended every third of it."""
RING_AGAIN = timedelta(seconds=10)
"""How long a queued task waits for a worker before the doorbell is rung again."""


async def extend(store: Store, runs: Sequence[tuple[str, int]]) -> set[str]:
    """Keep the leases of (task id, attempt) pairs; returns the ids that are still running under that attempt."""
    rows = await store.query(_EXTEND, [LEASE, [r[0] for r in runs], [r[1] for r in runs]])
    return {row[0] for row in rows}


async def expired(store: Store, limit: int = 200) -> list[str]:
    """Ids of tasks that should be running and that nobody holds any more."""
    return [row[0] for row in await store.query(_EXPIRED, [limit])]


async def ring_again(store: Store, ids: Sequence[str]) -> list[tuple[str, int]]:
    """(id, attempt) of the queued tasks among `ids` whose doorbell is due again; one process only gets each."""
    return [(row[0], row[1]) for row in await store.query(_RING_AGAIN, [RING_AGAIN, list(ids)])]


async def request_cancel(store: Store, task_id: str, attempt: int) -> None:
    """Note that a caller wants the task cancelled, and tell the process that runs it."""
    await store.query(_REQUEST_CANCEL, [task_id, attempt, CONTROL_CHANNEL])
