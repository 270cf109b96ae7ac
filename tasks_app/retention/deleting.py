"""Deleting tasks with all that hangs on them, in one statement a batch.

The rows are locked with SKIP LOCKED, so nobody is waited for; a task that is being written to goes another time. The
counters of TaskCount are kept by the trigger of the DELETE, which fires at the end of the statement: writers that meet
it wait for one commit, not for the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from protocol.states import TERMINAL, TaskState
from tasks_app.retention.connection import Connection

ENDED = [s.number for s in sorted(TERMINAL | {TaskState.UNSPECIFIED})]
"""States of tasks that may be deleted: nothing follows them."""
_ENDED = ", ".join(map(str, sorted(ENDED)))

# A webhook that is paused or disabled holds nothing back unless a person has asked for something to be sent again.
FREE = f"""t.push_due_at IS NULL
    AND NOT (t.has_push_configs AND EXISTS (SELECT FROM tasks_app_pushconfig p WHERE p.task_id = t.id
        AND p.due_at IS NOT NULL AND (p.disabled_reason = '' AND p.paused_at IS NULL OR p.resend <> '{{}}')))
    AND NOT EXISTS (SELECT FROM tasks_app_task child WHERE child.parent_id = t.id AND child.state NOT IN ({_ENDED}))"""
"""Condition of a task `t` that nothing waits for: no webhook, no delegated task. Index: task_parent."""

# Receipts have no index by task: the messages of the task name them.
_DELETE = f"""WITH doomed AS (
        SELECT t.id, t.agent_id, t.owner, t.has_stored_parts FROM tasks_app_task t
        WHERE t.id = ANY(%(ids)s) AND t.state IN ({_ENDED}) {{condition}} FOR UPDATE SKIP LOCKED
    ), receipts AS (
        DELETE FROM tasks_app_receipt r USING doomed d JOIN tasks_app_message m ON m.task_id = d.id
        WHERE r.agent_id = d.agent_id AND r.owner = d.owner AND r.message_id = m.message_id AND r.task_id = d.id
    ), messages AS (
        DELETE FROM tasks_app_message m USING doomed d WHERE m.task_id = d.id
    ), events AS (
        DELETE FROM tasks_app_event e USING doomed d WHERE e.task_id = d.id
    ), configs AS (
        DELETE FROM tasks_app_pushconfig p USING doomed d WHERE p.task_id = d.id
    ), deliveries AS (
        DELETE FROM tasks_app_delivery l USING doomed d WHERE l.task_id = d.id
    ), executions AS (
        DELETE FROM tasks_app_execution x USING doomed d WHERE x.task_id = d.id
    ), files AS (
        UPDATE tasks_app_storedpart s SET confirmed = false FROM doomed d
        WHERE s.task_id = d.id AND d.has_stored_parts AND s.confirmed
    ), gone AS (
        DELETE FROM tasks_app_task t USING doomed d WHERE t.id = d.id RETURNING t.id
    )
    SELECT id, has_stored_parts FROM doomed JOIN gone USING (id)"""
_DELETE_EXPIRED = _DELETE.format(condition=f"AND t.state = %(state)s AND t.status_at < %(cutoff)s AND {FREE}")
_DELETE_ENDED = _DELETE.format(condition="")


async def delete_expired(
    connection: Connection, ids: Sequence[str], state: TaskState, cutoff: datetime
) -> dict[str, bool]:
    """Delete those of `ids` that are in `state` since before `cutoff` and that nothing waits for.

    Returns their ids, each with whether it had parts in files. Raises psycopg.errors.LockNotAvailable.
    """
    parameters = {"ids": list(ids), "state": state.number, "cutoff": cutoff}
    return dict(await (await connection.execute(_DELETE_EXPIRED.encode(), parameters)).fetchall())


async def delete_ended(connection: Connection, ids: Sequence[str]) -> dict[str, bool]:
    """Delete those of `ids` that have ended, whatever waits for them. Returns the same."""
    return dict(await (await connection.execute(_DELETE_ENDED.encode(), {"ids": list(ids)})).fetchall())


async def delete_ledger(connection: Connection, ids: Sequence[str]) -> None:
    """What was noted of requests to webhooks while their tasks were being deleted."""
    await connection.execute(b"DELETE FROM tasks_app_delivery WHERE task_id = ANY(%s)", [list(ids)])
