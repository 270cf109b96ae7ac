"""What the next run would delete, counted but not touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.utils import OperationalError

from protocol.timestamps import now
from tasks_app.retention.deleting import FREE
from tasks_app.retention.rules import RULES, Rule, read_rules

# Index: task_list_state, by way of the owners that the counters know.
_COUNT = f"""SELECT count(*), count(*) FILTER (WHERE free), min(status_at), coalesce(sum(messages + events), 0)::bigint,
        coalesce(sum(file_bytes), 0)::bigint
    FROM (SELECT t.status_at, t.message_count AS messages, t.last_seq AS events, {FREE} AS free,
            CASE WHEN t.has_stored_parts
                THEN (SELECT sum(size) FROM tasks_app_storedpart s WHERE s.task_id = t.id) END AS file_bytes
        FROM (SELECT DISTINCT owner FROM tasks_app_taskcount WHERE agent_id = %(agent)s AND state = %(state)s) AS o
        CROSS JOIN LATERAL (SELECT * FROM tasks_app_task
            WHERE agent_id = %(agent)s AND owner = o.owner AND state = %(state)s AND status_at < %(cutoff)s) AS t
        LIMIT %(limit)s) AS expired"""
# What a row takes on disk, its share of the indexes included.
_ROW_BYTES = """SELECT sum(pg_total_relation_size(oid)) / greatest(sum(reltuples), 1)
    FROM pg_class WHERE oid IN ('tasks_app_task'::regclass, 'tasks_app_message'::regclass, 'tasks_app_event'::regclass)
    AND reltuples > 0"""
_ROW_BYTES_UNKNOWN = 500
"""While the database has no statistics yet."""
_PATIENCE = "2s"


@dataclass(frozen=True, slots=True)
class Expired:
    """What of one rule's tasks is over its time. `waiting` of the `tasks` stay until a webhook has been told or a
    delegated task has ended; `rows` are the tasks with their messages and events, `size` their bytes in the database,
    roughly, and in files. `more`: there are more than were counted."""

    rule: Rule
    tasks: int
    waiting: int
    oldest: datetime | None
    rows: int
    size: int
    more: bool


def preview(slug: str | None = None, most: int | None = None) -> Iterator[Expired]:
    """One answer for each rule of an agent, or of all; at most `most` tasks are looked at for each (None: all)."""
    with connection.cursor() as cursor:
        cursor.execute(RULES, {"slug": slug})
        rules = read_rules(cursor.fetchall())
        cursor.execute(_ROW_BYTES)
        row_bytes = float(cursor.fetchone()[0] or _ROW_BYTES_UNKNOWN)
    for rule in rules:
        yield _expired(rule, most, row_bytes)


def quick_preview(slug: str, most: int) -> list[Expired] | None:
    """The same for a page; None when counting takes longer than two seconds."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = '{_PATIENCE}'")
            return list(preview(slug, most))
    except OperationalError:
        return None


def _expired(rule: Rule, most: int | None, row_bytes: float) -> Expired:
    limit = None if most is None else most + 1
    parameters: dict[str, Any] = {
        "agent": rule.agent_id,
        "state": rule.state.number,
        "cutoff": rule.cutoff(now()),
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, parameters)
        tasks, free, oldest, attached, file_bytes = cursor.fetchone()
    rows = tasks + attached
    more = most is not None and tasks > most
    return Expired(rule, tasks, tasks - free, oldest, rows, int(rows * row_bytes) + file_bytes, more)
