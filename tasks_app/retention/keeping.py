"""Applying the rules: tasks whose time is over are deleted in small batches with pauses between them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings

from protocol.errors import UnavailableError
from protocol.timestamps import now
from tasks_app.content.removal import remove_parts_of
from tasks_app.content.storage import StorageDownError
from tasks_app.retention.connection import BACKUP, CLEANING, Connection, deleting_connection, held
from tasks_app.retention.deleting import delete_expired
from tasks_app.retention.rules import RULES, Rule, read_rules
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

_OWNERS_AT_ONCE = 500
_MOST_ROWS = 20_000
"""Messages and events of one batch; a single task that has more makes a batch of its own."""

# The counters know who has tasks in a state, so that no index of its own is needed to find the oldest ones.
_OWNERS = """SELECT owner FROM tasks_app_taskcount WHERE agent_id = %s AND owner > %s AND state = %s
    GROUP BY owner HAVING sum(tasks) > 0 ORDER BY owner LIMIT %s"""
# Index: task_list_state (agent, owner, state, -status_at, -id), read from its end. Always prepared, for the generic
# plan: one for these parameters may take another index, which grows with the tasks of other agents.
EXPIRED = """SELECT t.owner, t.status_at, t.id, t.last_seq + t.message_count
    FROM unnest(%(owners)s::text[]) WITH ORDINALITY AS o(owner, place) CROSS JOIN LATERAL (
        SELECT * FROM tasks_app_task
        WHERE agent_id = %(agent)s AND owner = o.owner AND state = %(state)s AND status_at < %(cutoff)s
            AND (status_at, id) > (CASE WHEN o.place = 1 THEN %(at)s::timestamptz ELSE '-infinity' END,
                CASE WHEN o.place = 1 THEN %(id)s ELSE '' END)
        ORDER BY status_at, id LIMIT %(limit)s
    ) AS t ORDER BY o.place, t.status_at, t.id LIMIT %(limit)s"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one run did. `finished` says that nothing was left to do; else the next run goes on."""

    deleted: int
    finished: bool


async def apply_retention(
    store: Store,
    *,
    slug: str | None = None,
    batch: int | None = None,
    pause: float | None = None,
    seconds: float | None = None,
) -> Kept:
    """Delete what is kept no longer, of one agent or of all, for at most `seconds` (None: until all is gone).

    `batch` tasks at most go in one transaction, with `pause` seconds after each (RETENTION_BATCH, RETENTION_PAUSE).
    Does nothing while another process does it or a backup is made. Raises psycopg.OperationalError; what was deleted
    before that stays deleted, and the next run goes on.
    """
    batch = settings.RETENTION_BATCH if batch is None else batch
    pause = settings.RETENTION_PAUSE if pause is None else pause
    deadline = None if seconds is None else time.monotonic() + seconds
    deleted = 0
    async with deleting_connection() as connection, held(connection, CLEANING) as ours:
        if not ours:
            return Kept(0, finished=False)
        rows = await (await connection.execute(RULES.encode(), {"slug": slug})).fetchall()
        for rule in read_rules(rows):
            cutoff = rule.cutoff(now())
            async for ids in _batches(connection, rule, cutoff, batch):
                if deadline is not None and time.monotonic() >= deadline:
                    return Kept(deleted, finished=False)
                gone = await _delete(store, connection, rule, ids, cutoff)
                if gone is None:
                    return Kept(deleted, finished=False)
                deleted += gone
                await asyncio.sleep(pause)
    return Kept(deleted, finished=True)


async def _delete(store: Store, connection: Connection, rule: Rule, ids: list[str], cutoff: datetime) -> int | None:
    """How many were deleted, files included; None while a backup is made, which must find them."""
    async with held(connection, BACKUP, shared=True) as allowed:
        if not allowed:
            return None
        try:
            gone = await delete_expired(connection, ids, rule.state, cutoff)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
            logger.warning("%d tasks of %s have to go another time: %s", len(ids), rule.slug, type(error).__name__)
            return 0
        try:
            await remove_parts_of(store, [task_id for task_id, has_files in gone.items() if has_files])
        except (StorageDownError, UnavailableError) as error:
            logger.warning("Files of deleted tasks are left for the sweep: %s", type(error).__name__)
    return len(gone)


async def _batches(connection: Connection, rule: Rule, cutoff: datetime, limit: int) -> AsyncIterator[list[str]]:
    """Ids of expired tasks, owner by owner, the oldest first, each once."""
    last_owner = ""
    while True:
        parameters = [rule.agent_id, last_owner, rule.state.number, _OWNERS_AT_ONCE]
        rows = await (await connection.execute(_OWNERS.encode(), parameters)).fetchall()
        owners = [row[0] for row in rows]
        if not owners:
            return
        last_owner = owners[-1]
        async for ids in _batches_of(connection, rule, cutoff, limit, owners):
            yield ids


async def _batches_of(
    connection: Connection, rule: Rule, cutoff: datetime, limit: int, owners: list[str]
) -> AsyncIterator[list[str]]:
    at: Any = "-infinity"
    after = ""
    while True:
        found = await connection.execute(
            EXPIRED.encode(),
            {
                "owners": owners,
                "agent": rule.agent_id,
                "state": rule.state.number,
                "cutoff": cutoff,
                "at": at,
                "id": after,
                "limit": limit,
            },
            prepare=True,
        )
        rows = _first_rows(await found.fetchall())
        if not rows:
            return
        owner, at, after, _ = rows[-1]
        owners = owners[owners.index(owner) :]
        yield [row[2] for row in rows]


def _first_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """As many as one transaction should delete."""
    size = 0
    for number, row in enumerate(rows):
        size += row[3]
        if size > _MOST_ROWS and number:
            return rows[:number]
    return rows
