"""The statement that writes a batch: set-based, so 256 tasks cost one round trip and one commit.

Every array parameter is a column; the one write of a calm host has a statement with plain values and without joins,
which costs the database a fifth less. A data-modifying CTE returns the rows that it really changed, and events,
messages and acceptances are inserted only for those, and only they are counted; so one loser (a stale version, a
repeated message) leaves its neighbours alone. The statement is its own transaction: the NOTIFY goes out with the
commit or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count

from tasks_app.journal.leases import LEASE, RING_AGAIN, RUNNING_NUMBERS
from tasks_app.journal.rows import (
    ACCEPTANCES,
    AUDIT_LINES,
    CHANGES,
    CONFIGS,
    CREATIONS,
    EVENTS,
    MESSAGES,
    PAYLOADS,
)
from tasks_app.push.config import CONFIGS_MAX, REPLACE

PUSH_MARK = "+"
"""Before the id of a task that was changed and has push configs, beside the id alone."""

_CREATE = """
creation AS {once}(
    SELECT * FROM {creations}
), fresh AS (
    INSERT INTO tasks_app_receipt (agent_id, owner, message_id, task_id, digest, created_at)
    SELECT agent_id, owner, accepted_id, id, digest, created_at FROM creation WHERE digest IS NOT NULL
    ON CONFLICT (agent_id, owner, message_id) DO NOTHING RETURNING task_id
), created AS (
    INSERT INTO tasks_app_task (id, agent_id, owner, context_id, state, status, status_at, created_at, last_seq,
        message_count, version, attempt, worker, started_at, lease_until, deadline_at, parent_id, dialect, request,
        metadata, has_push_configs, has_stored_parts)
    SELECT id, agent_id, owner, context_id, 1, status, created_at, created_at, 0, 1, 1, 1, worker,
        CASE WHEN worker IS NOT NULL THEN created_at END,
        least(now() + CASE WHEN worker IS NULL THEN {ring} ELSE {lease} END, deadline_at),
        deadline_at, parent_id, dialect, request, metadata, {configured}, {stored}
    FROM creation WHERE digest IS NULL OR {fresh}
    RETURNING id, agent_id, owner
), first_message AS (
    INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
    SELECT c.id, 1, c.message_id, 1, c.body, c.search, c.created_at FROM creation c {of_created}
)"""

# Leases are made by the clock of the database alone. A process gives them to itself only: another one that is given a
# task here keeps the lease that its own heartbeat extends.
_CHANGE = """
change AS {once}(
    SELECT * FROM {changes}
), changed AS (
    UPDATE tasks_app_task t SET state = i.state, status = i.status, status_at = i.status_at, metadata = i.metadata,
        last_seq = i.last_seq, message_count = i.message_count, version = t.version + 1, attempt = i.new_attempt,
        worker = i.worker,
        lease_until = CASE WHEN i.worker = %s AND i.state IN ({running})
                THEN least(now() + {lease}, coalesce(i.deadline_at, t.deadline_at))
            WHEN i.worker IS NOT NULL THEN t.lease_until
            WHEN i.state IN ({running}) THEN least(now() + {ring}, coalesce(i.deadline_at, t.deadline_at)) END,
        started_at = CASE WHEN i.worker = t.worker AND i.new_attempt = t.attempt THEN t.started_at
            WHEN i.worker IS NOT NULL THEN now() END,
        retries = CASE WHEN i.request IS NULL THEN t.retries ELSE 0 END, request = coalesce(i.request, t.request),
        deadline_at = coalesce(i.deadline_at, t.deadline_at),
        has_push_configs = {configured}, has_stored_parts = {stored},
        push_due_at = CASE WHEN {configured} AND i.last_seq > t.last_seq THEN coalesce(t.push_due_at, now())
            ELSE t.push_due_at END,
        cancel_requested_at = CASE WHEN i.new_attempt > t.attempt THEN NULL ELSE t.cancel_requested_at END
    FROM change i
    WHERE t.id = i.id AND t.version = i.version AND t.attempt = i.attempt AND t.state = i.old_state{checks}
    RETURNING t.id, t.has_push_configs, t.agent_id, t.owner, t.state, i.old_state
), logged AS (
    INSERT INTO tasks_app_event (task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt,
        created_at)
    SELECT e.* FROM {events} {of_changed}
)"""

_SPEAK = """
spoken AS (
    INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
    SELECT m.* FROM {messages} JOIN changed ON changed.id = m.task_id
)"""

_ACCEPT = """
accepted AS (
    INSERT INTO tasks_app_receipt (agent_id, owner, message_id, task_id, digest, created_at)
    SELECT a.agent_id, a.owner, a.message_id, a.task_id, a.digest, now()
    FROM {acceptances} JOIN changed ON changed.id = a.task_id
    ON CONFLICT (agent_id, owner, message_id) DO NOTHING
)"""

# A run that the task is taken from by a higher attempt. Until then it is in the task's row, also when it has ended.
# Every part of a statement sees the rows as they were before it.
_END = f"""
ended AS (
    INSERT INTO tasks_app_execution (task_id, attempt, worker, started_at, lease_until, ended_at, state, fenced)
    SELECT t.id, t.attempt, t.worker, t.started_at, t.lease_until,
        CASE WHEN t.state IN ({RUNNING_NUMBERS}) THEN now() ELSE t.status_at END, t.state,
        t.state IN ({RUNNING_NUMBERS})
    FROM change i JOIN changed USING (id) JOIN tasks_app_task t USING (id)
    WHERE i.new_attempt > t.attempt AND t.worker IS NOT NULL
    ON CONFLICT DO NOTHING
)"""

# A push config that came with a message (§3.2.2). One with the same id goes on where its predecessor was.
_CONFIG = """
config AS (
    SELECT * FROM {configs}
)"""
_CONFIGURE = f"""
won AS (
    SELECT id FROM created UNION ALL SELECT id FROM changed
), configured AS (
    INSERT INTO tasks_app_pushconfig AS p (task_id, config_id, url, token, scheme, credentials, version, created_at,
        cursor, last_seq)
    SELECT k.*, k.cursor FROM config k JOIN won ON won.id = k.task_id ORDER BY k.task_id, k.config_id
    ON CONFLICT (task_id, config_id) DO UPDATE SET {REPLACE}
)"""

# Tasks that get a part which is kept in a file.
_FILES = """
files AS (
    SELECT * FROM unnest(%s::text[]) AS f(task_id)
)"""

# Who did it, for a change that a person has made.
_NOTE = """
noted AS (
    INSERT INTO tasks_app_auditentry (at, actor, action, agent, task_id, detail)
    SELECT now(), n.actor, n.action, n.agent, n.task_id, n.detail
    FROM {audit_lines} JOIN changed ON changed.id = n.task_id
)"""

# Tasks that are changed only if nobody holds them.
_UNHELD = """
unheld AS (
    SELECT * FROM unnest(%s::text[]) AS u(task_id)
)"""

# How many tasks each owner has in each state, kept with the tasks themselves: the triggers that count what others write
# do not look at these (see COUNTS). Counters are taken in their order, so that no two writers wait for each other.
_COUNT = """
counted AS (
    INSERT INTO tasks_app_taskcount AS n (agent_id, owner, state, shard, tasks)
    {moves}
    ON CONFLICT (agent_id, owner, state, shard) DO UPDATE SET tasks = n.tasks + excluded.tasks
)"""
_SHARD = "pg_backend_pid() % 16"
_MOVES = {
    "create": f"SELECT agent_id, owner, 1::smallint, {_SHARD}, 1 FROM created",
    "change": f"""SELECT agent_id, owner, m.state, {_SHARD}, m.tasks FROM changed, LATERAL (VALUES
        (least(old_state, changed.state), CASE WHEN old_state < changed.state THEN -1 ELSE 1 END),
        (greatest(old_state, changed.state), CASE WHEN old_state < changed.state THEN 1 ELSE -1 END)) AS m(state, tasks)
    WHERE old_state <> changed.state""",
}
_SUM = f"""SELECT agent_id, owner, state, {_SHARD}, sum(tasks) FROM (
        {{moves}}
    ) AS m(agent_id, owner, state, shard, tasks)
    GROUP BY agent_id, owner, state HAVING sum(tasks) <> 0 ORDER BY agent_id, owner, state"""

COUNTS = "SELECT set_config('a2a.counts', 'written', false)"
"""Has to be run on a connection before the statements: they count, and the triggers leave it to them."""

# Only if another process wants to hear of it (see `tasks_app.live.interest`): a notification wakes every process.
_TELL = """
told AS (
    SELECT pg_notify(%s, payload) FROM {payloads} WHERE EXISTS (
        SELECT FROM tasks_app_listening WHERE origin <> %s AND until > now())
)"""

# What a statement does not mention costs nothing, and most batches of a calm host need a part or two.
_PARTS = {
    "config": _CONFIG,
    "files": _FILES,
    "unheld": _UNHELD,
    "create": _CREATE,
    "change": _CHANGE,
    "speak": _SPEAK,
    "accept": _ACCEPT,
    "end": _END,
    "note": _NOTE,
}
# Whether a task has push configs, and parts in files, after the write.
_AS_BEFORE = {
    "create": {"configured": "false", "stored": "false"},
    "change": {"configured": "t.has_push_configs", "stored": "t.has_stored_parts"},
}
_NAMED = {
    "create": {
        "configured": "id IN (SELECT task_id FROM config)",
        "stored": "id IN (SELECT task_id FROM files)",
    },
    "change": {
        "configured": "(t.has_push_configs OR t.id IN (SELECT task_id FROM config))",
        "stored": "(t.has_stored_parts OR t.id IN (SELECT task_id FROM files))",
    },
}
# A change with a config is lost when the task has too many: who writes it reads again, and refuses. Leases are looked
# at once more when the row is locked: the heartbeat that was first keeps its run.
_CHECKS = f""" AND NOT EXISTS (SELECT FROM config k WHERE k.task_id = t.id
        AND NOT tasks_app_push_room(k.task_id, k.config_id, {CONFIGS_MAX}))
        AND (t.lease_until < now() OR t.id NOT IN (SELECT task_id FROM unheld))"""
# Which rows of a batch are those of a write that was won; a write by itself was won or not, and its values may stand
# wherever they are used.
_OF_BATCH = {
    "once": "",
    "fresh": "id IN (SELECT task_id FROM fresh)",
    "of_created": "JOIN created USING (id)",
    "of_changed": "JOIN changed ON changed.id = e.task_id",
}
_OF_ONE = {
    "once": "NOT MATERIALIZED ",
    "fresh": "EXISTS (SELECT FROM fresh)",
    "of_created": "WHERE EXISTS (SELECT FROM created)",
    "of_changed": "WHERE EXISTS (SELECT FROM changed)",
}
_TIMES = {
    "lease": f"interval '{LEASE.total_seconds()} s'",
    "ring": f"interval '{RING_AGAIN.total_seconds()} s'",
    "running": RUNNING_NUMBERS,
}
_WON = {"create": "SELECT id FROM created", "change": "SELECT id FROM changed"}
_TABLES = {
    "configs": CONFIGS,
    "creations": CREATIONS,
    "changes": CHANGES,
    "events": EVENTS,
    "messages": MESSAGES,
    "acceptances": ACCEPTANCES,
    "audit_lines": AUDIT_LINES,
    "payloads": PAYLOADS,
}
EVERYTHING = tuple(_PARTS)
EVENTS_OF_ONE = 4
"""A change by itself with more events than that has the statement of a batch."""


def _of_batch(parts: Sequence[str]) -> str:
    tables = {name: rows.of_arrays() for name, rows in _TABLES.items()}
    moves = "\n    UNION ALL ".join(_MOVES[part] for part in parts if part in _MOVES)
    return _statement(parts, tables | _OF_BATCH, _SUM.format(moves=moves))


def _of_one(part: str, events: int = 0) -> str:
    tables = {name: rows.of_values(events if name == "events" else 1) for name, rows in _TABLES.items()}
    return _statement([part], tables | _OF_ONE, _MOVES[part])


def _statement(parts: Sequence[str], tables: Mapping[str, str], moves: str) -> str:
    flags = _NAMED if "config" in parts else _AS_BEFORE
    checks = _CHECKS if "config" in parts else ""
    texts = [_PARTS[part].format(**flags.get(part, {}), **tables, **_TIMES, checks=checks) for part in parts]
    if "config" in parts:
        texts.append(_CONFIGURE)
    texts += [_COUNT.format(moves=moves), _TELL.format(**tables)]
    rows = [*(_WON[part] for part in parts if part in _WON), "SELECT NULL FROM told"]
    if "change" in parts:
        rows.append(f"SELECT '{PUSH_MARK}' || id FROM changed WHERE has_push_configs")
    numbers = count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", "WITH " + ",".join(texts) + " UNION ALL ".join(rows))


def _combinations() -> Iterator[tuple[str, ...]]:
    """Everything that a batch may need; messages, acceptances and ended runs belong to changes."""
    yield ("create",)
    for size in range(4):
        for extra in combinations(("speak", "accept", "end"), size):
            yield ("change", *extra)
            yield ("create", "change", *extra)
    yield EVERYTHING


def name_of_batch(parts: Sequence[str]) -> str:
    """The name of the statement with these parts, each column an array."""
    return "_".join(("a2a", *parts))


def name_of_one(part: str, events: int = 0) -> str:
    """The name of the statement of one creation, or of one change with so many events, each value by itself."""
    return f"a2a_one_{part}_{events}"


STATEMENTS = {
    **{name_of_batch(parts): _of_batch(parts) for parts in _combinations()},
    name_of_one("create"): _of_one("create"),
    **{name_of_one("change", events): _of_one("change", events) for events in range(1, EVENTS_OF_ONE + 1)},
}
