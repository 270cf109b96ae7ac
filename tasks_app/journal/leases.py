"""Claims on running tasks: who holds them, until when, and whose time is over.

A lease is not part of a task's version: extending it makes nobody's write stale. It never lasts beyond the deadline of
the turn, so the index of leases finds tasks that are overdue too, whoever holds them, or nobody.

The clock of the database makes leases and says whether they hold: those of the machines need not agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import psycopg
from django.conf import settings

from protocol.states import INTERRUPTED, RUNNING
from tasks_app.tables.store import Store

CONTROL_CHANNEL = "a2a_cancel"
QUEUE_CHANNEL = "a2a_queue"
"""PostgreSQL's channel on which processes hear that tasks were queued that no doorbell rings for."""

RUNNING_NUMBERS = ", ".join(str(state.number) for state in sorted(RUNNING))
WAITING_NUMBERS = ", ".join(str(state.number) for state in sorted(INTERRUPTED))
LEASE = timedelta(seconds=settings.LEASE_SECONDS)
"""How long a run may be silent before its process counts as dead. Extended every fifth of it."""
RING_AGAIN = timedelta(seconds=10)
"""How long a queued task waits for a worker before the doorbell is rung again."""
LAST_RESORT = timedelta(days=1)
"""The deadline of a task that was stored without one, by a version of the host that knew none."""
LOOK = 5000
"""Tasks that one look gives at most."""

# A run that waits in its process for an answer keeps its lease too, beyond the deadline of the turn that is over. A row
# that somebody else writes at this moment is left out: no heartbeat waits for a lock, and a write extends the lease.
_EXTEND = f"""WITH held AS (
        SELECT t.id FROM unnest(%(ids)s::text[], %(attempts)s::int[]) AS i(id, attempt)
        JOIN tasks_app_task t USING (id, attempt) WHERE t.state IN ({RUNNING_NUMBERS}, {WAITING_NUMBERS})
        FOR NO KEY UPDATE OF t SKIP LOCKED
    ), extended AS (
        UPDATE tasks_app_task t SET lease_until = CASE WHEN t.state IN ({RUNNING_NUMBERS})
            THEN least(now() + %(lease)s, t.deadline_at) ELSE now() + %(lease)s END
        FROM held WHERE t.id = held.id
    )
    SELECT t.id FROM unnest(%(ids)s::text[], %(attempts)s::int[]) AS i(id, attempt)
    JOIN tasks_app_task t USING (id, attempt) WHERE t.state IN ({RUNNING_NUMBERS}, {WAITING_NUMBERS})"""
_HERE = """WITH gone AS (DELETE FROM tasks_app_process WHERE until < now() - interval '1 day')
    INSERT INTO tasks_app_process (origin, role, started_at, until, runs) VALUES (%s, %s, now(), now() + %s, %s)
    ON CONFLICT (origin) DO UPDATE SET until = excluded.until, runs = excluded.runs"""
_GONE = "DELETE FROM tasks_app_process WHERE origin = %s"
_EXPIRED = f"""SELECT id, agent_id, attempt, worker, retries, coalesce(deadline_at <= now(), false),
        cancel_requested_at IS NOT NULL, extract(epoch FROM now() - lease_until)::float8
    FROM tasks_app_task WHERE state IN ({RUNNING_NUMBERS}) AND lease_until < now() ORDER BY lease_until LIMIT {LOOK}"""
_CALL_AGAIN = f"""UPDATE tasks_app_task SET deadline_at = coalesce(deadline_at, now() + %s),
        lease_until = least(now() + %s, deadline_at)
    WHERE id = ANY(%s) AND worker IS NULL AND state IN ({RUNNING_NUMBERS}) AND lease_until < now()
    RETURNING id, attempt"""
_REQUEUE = f"""WITH taken AS (
        SELECT t.id, t.attempt, t.worker, t.started_at, t.lease_until, t.state
        FROM unnest(%s::text[], %s::int[]) AS i(id, attempt) JOIN tasks_app_task t USING (id, attempt)
        WHERE t.state IN ({RUNNING_NUMBERS}) AND t.worker IS NOT NULL AND (%s OR t.lease_until < now())
        ORDER BY t.id FOR UPDATE OF t
    ), ended AS (
        INSERT INTO tasks_app_execution (task_id, attempt, worker, started_at, lease_until, ended_at, state, fenced)
        SELECT id, attempt, worker, started_at, lease_until, now(), state, true FROM taken ON CONFLICT DO NOTHING
    )
    UPDATE tasks_app_task t SET attempt = t.attempt + 1, version = t.version + 1, worker = NULL, started_at = NULL,
        lease_until = now(), retries = t.retries + %s, cancel_requested_at = NULL
    FROM taken WHERE t.id = taken.id RETURNING t.id, t.attempt, t.agent_id"""
_UNANSWERED = f"""SELECT t.id, t.version FROM unnest(%s::bigint[], %s::bigint[]) AS a(id, seconds)
    CROSS JOIN LATERAL (SELECT id, version FROM tasks_app_task WHERE agent_id = a.id AND state IN ({WAITING_NUMBERS})
        AND status_at < now() - make_interval(secs => a.seconds) ORDER BY status_at LIMIT {LOOK}) t"""
# The process hears of it at once; a row that somebody writes at this moment is noted when it is asked again.
_REQUEST_CANCELS = f"""WITH asked AS (
        SELECT t.id, t.attempt FROM unnest(%(ids)s::text[], %(attempts)s::int[]) AS i(id, attempt)
        JOIN tasks_app_task t USING (id, attempt) WHERE t.state IN ({RUNNING_NUMBERS}, {WAITING_NUMBERS})
    ), held AS (
        SELECT t.id FROM asked JOIN tasks_app_task t USING (id, attempt) WHERE t.cancel_requested_at IS NULL
        ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
    ), noted AS (
        UPDATE tasks_app_task t SET cancel_requested_at = now() FROM held WHERE t.id = held.id
    )
    SELECT id, attempt, pg_notify(%(channel)s, id) FROM asked"""


class Expired(NamedTuple):
    """A task that should be running and that nobody holds: `worker` None is a queued one whose call is due again.

    `overdue`: its deadline is over. `seconds` is for how long nobody has held it.
    """

    id: str
    agent_id: int
    attempt: int
    worker: str | None
    retries: int
    overdue: bool
    cancel_requested: bool
    seconds: float


def be_heard(connection: psycopg.Connection, origin: str, role: str, runs: int) -> None:
    """Note that a process lives, and how many runs it has."""
    connection.execute(_HERE, [origin, role, LEASE, runs])


def say_goodbye(connection: psycopg.Connection, origin: str) -> None:
    """Note that a process ends in an orderly way."""
    connection.execute(_GONE, [origin])


def extend(connection: psycopg.Connection, runs: Sequence[tuple[str, int]]) -> set[str]:
    """Keep the leases of (task id, attempt) pairs; returns the ids that are unfinished and still under that attempt."""
    named = {"ids": [r[0] for r in runs], "attempts": [r[1] for r in runs], "lease": LEASE}
    return {row[0] for row in connection.execute(_EXTEND.encode(), named)}


async def expired(store: Store) -> list[Expired]:
    """Tasks that should be running and that nobody holds any more, those first that have waited longest."""
    return [Expired._make(row) for row in await store.query(_EXPIRED, [])]


async def call_again(store: Store, ids: Sequence[str]) -> list[tuple[str, int]]:
    """(id, attempt) of the queued tasks among `ids` that are due to be called again; one process only gets each."""
    return [(row[0], row[1]) for row in await store.query(_CALL_AGAIN, [LAST_RESORT, RING_AGAIN, list(ids)])]


async def requeue(store: Store, runs: Sequence[tuple[str, int]], *, given_up: bool) -> list[tuple[str, int, int]]:
    """Queue tasks again whose run (task id, attempt) is to be repeated; returns (id, attempt, agent id) of those that
    were.

    `given_up`: by the process that runs them, which does not count as a retry. Otherwise their leases have to be over.
    """
    ids, attempts = [r[0] for r in runs], [r[1] for r in runs]
    rows = await store.query(_REQUEUE, [ids, attempts, given_up, 0 if given_up else 1])
    return [(row[0], row[1], row[2]) for row in rows]


async def call_for_help(store: Store) -> None:
    """Tell every process to look for queued tasks now."""
    await store.query("SELECT pg_notify(%s, '')", [QUEUE_CHANNEL])


async def unanswered(store: Store, limits: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Tasks that have waited for an answer for longer than the limit of their agent, (agent id, seconds): id and
    version."""
    return dict(await store.query(_UNANSWERED, [[a for a, _ in limits], [s for _, s in limits]]))


async def request_cancels(store: Store, runs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], bool]:
    """Note that callers want tasks (id, attempt) cancelled, and tell the processes that run them. Gives True for those
    that are unfinished and still under that attempt."""
    ids, attempts = [r[0] for r in runs], [r[1] for r in runs]
    rows = await store.query(_REQUEST_CANCELS, {"ids": ids, "attempts": attempts, "channel": CONTROL_CHANNEL})
    return {(row[0], row[1]): True for row in rows}
