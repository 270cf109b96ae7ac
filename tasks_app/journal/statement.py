"""The statement that writes a batch: set-based, so 256 tasks cost one round trip and one commit.

Every array parameter is a column. A data-modifying CTE returns the rows that it really changed, and events, messages
and acceptances are inserted only for those; so one loser (a stale version, a repeated message) leaves its neighbours
alone. The statement is its own transaction: the NOTIFY goes out with the commit or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, count

from tasks_app.journal.changes import Change, Creation
from tasks_app.journal.columns import (
    acceptance_columns,
    audit_columns,
    change_columns,
    config_columns,
    creation_columns,
    event_columns,
    message_columns,
)
from tasks_app.journal.leases import LEASE, RING_AGAIN, RUNNING_NUMBERS
from tasks_app.push.config import CONFIGS_MAX, REPLACE
from tasks_app.tables.arrays import array, text

CHANNEL = "a2a_events"
PUSH_MARK = "+"
"""Before the id of a task that was changed and has push configs, beside the id alone."""
_NOTIFY_IDS = 150  # ids of 36 characters and a seq in one payload, under NOTIFY's 8,000 bytes

_CREATE = """
creation AS (
    SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::text[],
        %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
        %s::timestamptz[])
    AS i(id, agent_id, owner, context_id, status, created_at, dialect, request, worker, message_id, digest,
        accepted_id, body, search, metadata, parent_id, deadline_at)
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
    FROM creation WHERE digest IS NULL OR id IN (SELECT task_id FROM fresh)
    RETURNING id
), first_message AS (
    INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
    SELECT c.id, 1, c.message_id, 1, c.body, c.search, c.created_at FROM creation c JOIN created USING (id)
)"""

# Leases are made by the clock of the database alone. A process gives them to itself only: another one that is given a
# task here keeps the lease that its own heartbeat extends.
_CHANGE = """
change AS (
    SELECT * FROM unnest(%s::text[], %s::int[], %s::int[], %s::smallint[], %s::text[], %s::timestamptz[], %s::text[],
        %s::int[], %s::int[], %s::int[], %s::text[], %s::text[], %s::timestamptz[])
    AS i(id, version, attempt, state, status, status_at, metadata, last_seq, message_count, new_attempt, worker,
        request, deadline_at)
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
    FROM change i WHERE t.id = i.id AND t.version = i.version AND t.attempt = i.attempt{checks}
    RETURNING t.id, t.has_push_configs
), logged AS (
    INSERT INTO tasks_app_event (task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt,
        created_at)
    SELECT e.* FROM unnest(%s::text[], %s::int[], %s::smallint[], %s::text[], %s::text[], %s::text[], %s::bool[],
        %s::bool[], %s::int[], %s::timestamptz[])
    AS e(task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt, created_at)
    JOIN changed ON changed.id = e.task_id
)"""

_SPEAK = """
spoken AS (
    INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
    SELECT m.* FROM unnest(%s::text[], %s::int[], %s::text[], %s::smallint[], %s::text[], %s::text[], %s::timestamptz[])
    AS m(task_id, position, message_id, role, body, search, created_at)
    JOIN changed ON changed.id = m.task_id
)"""

_ACCEPT = """
accepted AS (
    INSERT INTO tasks_app_receipt (agent_id, owner, message_id, task_id, digest, created_at)
    SELECT a.agent_id, a.owner, a.message_id, a.task_id, a.digest, now()
    FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[])
    AS a(agent_id, owner, message_id, task_id, digest)
    JOIN changed ON changed.id = a.task_id
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
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
        %s::timestamptz[], %s::int[])
    AS k(task_id, config_id, url, token, scheme, credentials, version, created_at, cursor)
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
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
    AS n(task_id, actor, action, agent, detail) JOIN changed ON changed.id = n.task_id
)"""

# Tasks that are changed only if nobody holds them.
_UNHELD = """
unheld AS (
    SELECT * FROM unnest(%s::text[]) AS u(task_id)
)"""

# Only if another process wants to hear of it (see `tasks_app.live.interest`): a notification wakes every process.
_TELL = """
told AS (
    SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload
    WHERE EXISTS (SELECT FROM tasks_app_listening WHERE origin <> %s AND until > now())
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
_TIMES = {
    "lease": f"interval '{LEASE.total_seconds()} s'",
    "ring": f"interval '{RING_AGAIN.total_seconds()} s'",
    "running": RUNNING_NUMBERS,
}
_WON = {"create": "SELECT id FROM created", "change": "SELECT id FROM changed"}


def _statement(parts: Sequence[str]) -> str:
    flags = _NAMED if "config" in parts else _AS_BEFORE
    checks = _CHECKS if "config" in parts else ""
    texts = [_PARTS[part].format(**flags.get(part, {}), **_TIMES, checks=checks) for part in parts]
    if "config" in parts:
        texts.append(_CONFIGURE)
    rows = [*(_WON[part] for part in parts if part in _WON), "SELECT NULL FROM told"]
    if "change" in parts:
        rows.append(f"SELECT '{PUSH_MARK}' || id FROM changed WHERE has_push_configs")
    sql = "WITH " + ",".join([*texts, _TELL]) + " UNION ALL ".join(rows)
    numbers = count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", sql)


def _name(parts: Sequence[str]) -> str:
    return "_".join(("a2a", *parts))


def _combinations() -> Iterator[tuple[str, ...]]:
    """Everything that a batch may need; messages, acceptances and ended runs belong to changes."""
    yield ("create",)
    for size in range(4):
        for extra in combinations(("speak", "accept", "end"), size):
            yield ("change", *extra)
            yield ("create", "change", *extra)
    yield tuple(_PARTS)


STATEMENTS = {_name(parts): _statement(parts) for parts in _combinations()}


def prepare(origin: str, creations: Sequence[Creation], changes: Sequence[Change]) -> tuple[str, list[str]]:
    """The name of the statement for a batch, and its parameters in order: one array literal a column."""
    columns: dict[str, list[str]] = {}
    configs = [
        *(c.push_config for c in creations if c.push_config is not None),
        *(c.push_config for c in changes if c.push_config is not None),
    ]
    files = [
        *(c.task_id for c in creations if c.has_stored_parts),
        *(c.task_id for c in changes if c.has_stored_parts),
    ]
    raised = [c for c in changes if c.new_attempt > c.attempt]
    unheld = [c.task_id for c in raised if c.if_unheld]
    everything = bool(configs or files or unheld or any(c.audit for c in changes))
    if everything:
        columns["config"] = config_columns(configs)
        columns["files"] = [array(files)]
        columns["unheld"] = [array(unheld)]
    if creations or everything:
        columns["create"] = creation_columns(creations)
    if changes or everything:
        columns["change"] = [*change_columns(changes), origin, *event_columns(changes)]
    if everything or any(c.messages for c in changes):
        columns["speak"] = message_columns(changes)
    if everything or any(c.acceptance for c in changes):
        columns["accept"] = acceptance_columns(changes)
    if everything or raised:
        columns["end"] = []
    if everything:
        columns["note"] = audit_columns(changes)
    told = [CHANNEL, array(map(text, _payloads(origin, creations, changes))), origin]
    return _name(tuple(columns)), [*chain.from_iterable(columns.values()), *told]


def _payloads(origin: str, creations: Sequence[Creation], changes: Sequence[Change]) -> list[str]:
    """`<origin> <task id>:<last seq> …`: who wrote, and how far each task's log goes now."""
    news = list(
        chain((f"{c.task_id}:0" for c in creations), (f"{c.task_id}:{c.last_seq}" for c in changes if c.events))
    )
    return [" ".join([origin, *news[i : i + _NOTIFY_IDS]]) for i in range(0, len(news), _NOTIFY_IDS)]
