"""What names a principal besides tasks: API keys, receipts, counters. Their sums stay what they are."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType

from agents.models import ApiKey
from tasks_app.retention.connection import Connection
from tasks_app.retention.scope import Scope

ERASED = "(erased)"
"""The caller in the usage counters of those who were erased; an owner of a key with this name shares its rows."""

_RECEIPTS = """DELETE FROM tasks_app_receipt r USING (
        SELECT agent_id, owner, message_id FROM tasks_app_receipt, agents_agent a
        WHERE agent_id = a.id AND owner = %(owner)s LIMIT %(limit)s) AS found
    WHERE r.agent_id = found.agent_id AND r.owner = found.owner AND r.message_id = found.message_id
        AND NOT EXISTS (SELECT FROM tasks_app_task t WHERE t.id = r.task_id)"""
# In the order of the unique key, as the host's processes write them, so that neither waits for the other in a circle.
_USAGE = """WITH locked AS (
        SELECT id FROM agents_usage WHERE caller = %(owner)s
        ORDER BY agent_id, binding, version, operation, caller FOR UPDATE
    ), gone AS (
        DELETE FROM agents_usage u USING locked WHERE u.id = locked.id RETURNING u.*
    )
    INSERT INTO agents_usage AS u (agent_id, binding, version, operation, caller, calls, errors, first_seen, last_seen)
    SELECT agent_id, binding, version, operation, %(erased)s, calls, errors, first_seen, last_seen FROM gone
    ORDER BY 1, 2, 3, 4
    ON CONFLICT (agent_id, binding, version, operation, caller) DO UPDATE
    SET calls = u.calls + excluded.calls, errors = u.errors + excluded.errors,
        first_seen = least(u.first_seen, excluded.first_seen), last_seen = greatest(u.last_seen, excluded.last_seen)"""
_COUNTERS = """SELECT agent_id, state, shard, tasks FROM tasks_app_taskcount
    WHERE owner = %s AND agent_id IN (SELECT id FROM agents_agent) ORDER BY agent_id, owner, state, shard FOR UPDATE"""
_DROP_COUNTERS = """DELETE FROM tasks_app_taskcount c USING unnest(%s::bigint[], %s::smallint[], %s::smallint[])
    AS d(agent_id, state, shard)
    WHERE c.agent_id = d.agent_id AND c.owner = %s AND c.state = d.state AND c.shard = d.shard"""


def delete_keys(owner: str) -> int:
    """The API keys of a principal, and their names in the history of the admin. Returns how many there were."""
    keys = ApiKey.objects.filter(owner=owner)
    kind = ContentType.objects.get_for_model(ApiKey)
    ids = [str(pk) for pk in keys.values_list("pk", flat=True)]
    LogEntry.objects.filter(content_type=kind, object_id__in=ids).update(object_repr=ERASED, change_message="")
    return keys.delete()[1].get(ApiKey._meta.label, 0)


async def delete_receipts(connection: Connection, scope: Scope, limit: int) -> int:
    """Receipts of a principal whose tasks are gone, at most `limit`. Returns how many."""
    cursor = await connection.execute(_RECEIPTS.encode(), {"owner": scope.owner, "limit": limit})
    return cursor.rowcount


async def rename_usage(connection: Connection, owner: str) -> None:
    """The usage counters of a caller become those of nobody in particular."""
    if owner == ERASED:
        return
    await connection.execute(_USAGE.encode(), {"owner": owner, "erased": ERASED})


async def drop_counters(connection: Connection, owner: str) -> None:
    """Forget the counters of a principal who has no tasks.

    The rows of all shards are locked while their sums are taken: a writer that counts meanwhile waits, and then makes
    a row of its own.
    """
    async with connection.transaction():
        rows = await (await connection.execute(_COUNTERS.encode(), [owner])).fetchall()
        sums: dict[tuple[int, int], int] = {}
        for agent_id, state, _, tasks in rows:
            sums[agent_id, state] = sums.get((agent_id, state), 0) + tasks
        empty = [row for row in rows if sums[row[0], row[1]] == 0]
        columns = [[row[n] for row in empty] for n in range(3)]
        await connection.execute(_DROP_COUNTERS.encode(), [*columns, owner])
