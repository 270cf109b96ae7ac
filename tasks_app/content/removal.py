"""Deleting files and the rows that name them.

A file has a row of StoredPart before it is written and until it is gone, so the rows say what there is. Files go first
and their rows last: what stops in between is done again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tasks_app.content import storage
from tasks_app.content.threads import in_thread
from tasks_app.tables.store import Store

_OF_TASKS = "SELECT id, name FROM tasks_app_storedpart WHERE task_id = ANY(%s)"
_FORGET = "DELETE FROM tasks_app_storedpart WHERE id = ANY(%s) RETURNING id"


async def remove_parts_of(store: Store, task_ids: Sequence[str]) -> int:
    """Delete the files of tasks, and then their rows. Returns how many there were.

    To be called once the deletion of the tasks is committed; if it never is, `unnamed` finds the files a day
    later. Raises StorageDownError, UnavailableError.
    """
    return await remove_rows(store, await store.query(_OF_TASKS, [list(task_ids)])) if task_ids else 0


async def forget(store: Store, part_ids: Sequence[str]) -> None:
    """Delete the files and rows of parts whose write was lost. Raises StorageDownError, UnavailableError."""
    await remove_rows(store, [(part_id, storage.name_of(part_id)) for part_id in part_ids])


async def remove_rows(store: Store, rows: Sequence[tuple[str, ...]]) -> int:
    """Delete files, given as (id, name), and then their rows. Returns how many. Raises the same."""
    if not rows:
        return 0

    def delete() -> None:
        for _, name in rows:
            storage.delete(name)

    await in_thread(delete)
    await store.query(_FORGET, [[part_id for part_id, _ in rows]])
    return len(rows)
