"""Which webhooks are due, and who delivers to them: claims, cursors and retries as rows.

A config that waits has `due_at`, so the index of what waits stays as small as that is. Who delivers raises `claim` and
holds `lease_until`; every later statement names that claim, so a config has one deliverer at a time, and one that was
taken for dead moves no cursor any more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from tasks_app.store import Store

LEASE = timedelta(seconds=40)
"""How long a deliverer may be silent: one request and what is stored around it."""
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 1.0, 3600.0

# What the journal noted in the task's row goes to its configs, and the note is cleared if nothing was added meanwhile.
# A config that is stored at this very moment begins after the events that are stored, so it misses nothing here.
_SPREAD = """WITH task AS (
        SELECT id, last_seq FROM tasks_app_task WHERE id = %s AND push_due_at IS NOT NULL
    ), due AS (
        UPDATE tasks_app_pushconfig p SET last_seq = task.last_seq, due_at = coalesce(p.due_at, now())
        FROM task WHERE p.task_id = task.id AND p.cursor < task.last_seq AND p.disabled_reason = ''
    )
    UPDATE tasks_app_task t SET push_due_at = NULL FROM task
    WHERE t.id = task.id AND t.last_seq = task.last_seq RETURNING t.id"""
_CLAIM = """UPDATE tasks_app_pushconfig p SET claim = p.claim + 1, lease_until = now() + %s
    FROM (SELECT task_id, config_id FROM tasks_app_pushconfig
        WHERE task_id = ANY(%s) AND due_at <= now() AND (lease_until IS NULL OR lease_until < now())
        ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED) AS free
    WHERE p.task_id = free.task_id AND p.config_id = free.config_id
    RETURNING p.task_id, p.config_id, p.url, p.token, p.scheme, p.credentials, p.version, p.claim, p.cursor, p.attempts,
        (SELECT context_id FROM tasks_app_task t WHERE t.id = p.task_id)"""
_MOVE = """UPDATE tasks_app_pushconfig SET cursor = %(seq)s, attempts = 0, last_error = '',
        due_at = CASE WHEN %(seq)s < last_seq THEN now() END,
        lease_until = CASE WHEN %(seq)s < last_seq THEN now() + %(lease)s END
    WHERE task_id = %(task)s AND config_id = %(config)s AND claim = %(claim)s RETURNING last_seq"""
_POSTPONE = """UPDATE tasks_app_pushconfig SET due_at = now() + %(wait)s, lease_until = NULL,
        attempts = attempts + 1, last_error = %(error)s
    WHERE task_id = %(task)s AND config_id = %(config)s AND claim = %(claim)s RETURNING due_at"""
_RELEASE = """UPDATE tasks_app_pushconfig SET lease_until = NULL
    WHERE task_id = %(task)s AND config_id = %(config)s AND claim = %(claim)s RETURNING claim"""
# Indexes: task_push_due, push_config_due.
_NOTED = "SELECT id FROM tasks_app_task WHERE push_due_at < now() - %s ORDER BY push_due_at LIMIT %s"
_DUE = """SELECT DISTINCT task_id FROM (SELECT task_id FROM tasks_app_pushconfig
    WHERE due_at <= now() AND (lease_until IS NULL OR lease_until < now()) ORDER BY due_at LIMIT %s) AS due"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One config whose next events are this process's to deliver; `token` and `credentials` are encrypted."""

    task_id: str
    config_id: str
    url: str
    token: str
    scheme: str
    credentials: str
    version: str
    number: int
    cursor: int
    attempts: int
    context_id: str


class PushQueue:
    """The statements, for one process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, task_ids: Sequence[str], limit: int) -> list[Claim]:
        """Claim at most `limit` due configs of some tasks."""
        for task_id in task_ids:
            await self._store.query(_SPREAD, [task_id])
        rows = await self._store.query(_CLAIM, [LEASE, list(task_ids), limit])
        return [Claim(*row) for row in rows]

    async def waiting(self, limit: int, older_than: timedelta) -> list[str]:
        """Ids of tasks whose events nobody has looked at for so long, or with a config whose next attempt is due."""
        noted = await self._store.query(_NOTED, [older_than, limit])
        due = await self._store.query(_DUE, [limit])
        return list(dict.fromkeys(row[0] for row in [*noted, *due]))

    async def delivered(self, claim: Claim, seq: int) -> int | None:
        """The receiver has taken event `seq`: the seq that the config is to be brought to, and the claim is held while
        that is further on. None if the claim is lost, by deletion too."""
        rows = await self._store.query(_MOVE, _names(claim) | {"seq": seq, "lease": LEASE})
        return rows[0][0] if rows else None

    async def failed(self, claim: Claim, error: str) -> None:
        """The receiver has not taken an event: try again later."""
        wait = timedelta(seconds=retry_seconds(claim.attempts))
        await self._store.query(_POSTPONE, _names(claim) | {"wait": wait, "error": error})

    async def release(self, claim: Claim) -> None:
        """Let somebody else deliver, at once."""
        await self._store.query(_RELEASE, _names(claim))


def retry_seconds(attempts: int) -> float:
    """How long to wait after so many failures in a row before this one: twice as long each time, up to an hour, and
    not in step with others."""
    longest = min(FIRST_RETRY_SECONDS * 2.0 ** min(attempts, 20), LAST_RETRY_SECONDS)
    return longest * random.uniform(0.5, 1.0)


def _names(claim: Claim) -> dict[str, object]:
    return {"task": claim.task_id, "config": claim.config_id, "claim": claim.number}
