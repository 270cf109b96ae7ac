"""Files that no task names: their write was lost, or the process died before it."""

from __future__ import annotations

import logging

from tasks_app.content.removal import remove_rows
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

# A part is named by the one message, event or status that it came with. Index: stored_part_unconfirmed.
_OLD = """SELECT p.id, p.name,
        EXISTS (SELECT FROM tasks_app_task t WHERE t.id = p.task_id AND (strpos(t.status, p.id) > 0
            OR EXISTS (SELECT FROM tasks_app_message m WHERE m.task_id = p.task_id AND strpos(m.body, p.id) > 0)
            OR EXISTS (SELECT FROM tasks_app_event e WHERE e.task_id = p.task_id AND strpos(e.body, p.id) > 0)))
    FROM tasks_app_storedpart p
    WHERE NOT p.confirmed AND p.created_at < now() - make_interval(secs => %s) ORDER BY p.created_at LIMIT %s"""
_CONFIRM = "UPDATE tasks_app_storedpart SET confirmed = true WHERE id = ANY(%s) RETURNING id"
_BATCH = 500
UNNAMED_SECONDS = 86400.0
"""How long a file may be without a task that names it. Whatever stores one has ended long before."""


async def remove_unnamed(store: Store, older_than: float = UNNAMED_SECONDS) -> int:
    """Delete files that were stored more than `older_than` seconds ago and that no task names: their write was lost,
    or the process died before it. Returns how many.

    Each file is looked at until it has been found to be named, once. Raises StorageDownError, UnavailableError.
    """
    removed = 0
    while rows := await store.query(_OLD, [older_than, _BATCH]):
        named = [part_id for part_id, _, is_named in rows if is_named]
        if named:
            await store.query(_CONFIRM, [named])
        removed += await remove_rows(store, [(part_id, name) for part_id, name, is_named in rows if not is_named])
    if removed:
        logger.warning("%d files that no task names were deleted", removed)
    return removed
