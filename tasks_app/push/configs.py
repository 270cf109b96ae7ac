"""Reading and changing the push configs of a task, off the hot path of the journal.

A config is no part of a task's version: adding one makes nobody's write stale.
"""

from __future__ import annotations

from dataclasses import astuple

from tasks_app.push.config import CONFIGS_MAX, REPLACE, StoredConfig
from tasks_app.tables.store import Store

_COLUMNS = "task_id, config_id, url, token, scheme, credentials, version, created_at, cursor"

# The task's row first: whoever writes it waits, and then sees that it has configs. A new config begins after the
# events that are stored by then. One that replaces another may have something to deliver: somebody has to look. Of
# those that come at the same time, each counts what the one before it has stored (migration 0006).
_SAVE = f"""WITH task AS (
        UPDATE tasks_app_task SET has_push_configs = true, push_due_at = now()
        WHERE id = %s AND tasks_app_push_room(id, %s, {CONFIGS_MAX}) RETURNING last_seq)
    INSERT INTO tasks_app_pushconfig AS p (task_id, config_id, url, token, scheme, credentials, version, created_at,
        cursor, last_seq)
    SELECT %s, %s, %s, %s, %s, %s, %s, %s, last_seq, last_seq FROM task
    ON CONFLICT (task_id, config_id) DO UPDATE SET {REPLACE} RETURNING config_id"""
_FIND = f"SELECT {_COLUMNS} FROM tasks_app_pushconfig WHERE task_id = %s AND config_id = %s"
_PAGE = f"SELECT {_COLUMNS} FROM tasks_app_pushconfig WHERE task_id = %s AND config_id > %s ORDER BY config_id LIMIT %s"
_DELETE = "DELETE FROM tasks_app_pushconfig WHERE task_id = %s AND config_id = %s RETURNING config_id"
_ROOM = f"SELECT tasks_app_push_room(%s, %s, {CONFIGS_MAX})"


async def save(store: Store, config: StoredConfig) -> bool:
    """Store a config, in the place of one with the same id. False if the task has too many already."""
    return bool(await store.query(_SAVE, [config.task_id, config.config_id, *astuple(config)[:-1]]))


async def find(store: Store, task_id: str, config_id: str) -> StoredConfig | None:
    """One config of a task."""
    rows = await store.query(_FIND, [task_id, config_id])
    return StoredConfig(*rows[0]) if rows else None


async def page(store: Store, task_id: str, after: str, limit: int) -> list[StoredConfig]:
    """At most `limit` configs of a task by id, beyond the id `after`."""
    return [StoredConfig(*row) for row in await store.query(_PAGE, [task_id, after, limit])]


async def delete(store: Store, task_id: str, config_id: str) -> None:
    """Forget a config, whether it is there or not."""
    await store.query(_DELETE, [task_id, config_id])


async def has_room(store: Store, task_id: str, config_id: str) -> bool:
    """Whether a task may have a config with this id beside its others."""
    return bool((await store.query(_ROOM, [task_id, config_id]))[0][0])
