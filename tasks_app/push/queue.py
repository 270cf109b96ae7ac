"""Which webhooks are due, and who delivers to them: claims, cursors and retries as rows.

A config that waits has `due_at`, so the index of what waits stays as small as that is. Who delivers raises `claim` and
holds `lease_until`; every later statement names that claim, so a config has one deliverer at a time, and one that was
taken for dead moves no cursor any more.

Whoever needs several rows takes those of tasks before those of configs, and each kind in the order of its key: nobody
waits in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks_app.models import Delivery
from tasks_app.push.retries import GIVE_UP, reason_of, retry_after
from tasks_app.tables.store import Store

LEASE = timedelta(seconds=40)
"""How long a deliverer may be silent: a wait for a place, one request and what is stored around them."""

EVENT, AGAIN, TEST = Delivery.Kind.EVENT.value, Delivery.Kind.AGAIN.value, Delivery.Kind.TEST.value

_NOW = "coalesce(%(now)s::timestamptz, now())"
_FREE = f"(lease_until IS NULL OR lease_until < {_NOW})"

# What the journal noted in the rows of tasks goes to their configs, and the due ones are claimed; with one row for each
# task that was looked at. A task whose row somebody writes at this moment is left out: nothing waits for deliveries. A
# config that is stored at this moment begins after the events that are stored, so it misses nothing here.
_TAKE = f"""WITH task AS MATERIALIZED (
        SELECT id, last_seq, context_id, push_due_at FROM tasks_app_task WHERE id = ANY(%(ids)s) ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
    ), config AS MATERIALIZED (
        SELECT p.task_id, p.config_id, p.attempts, {_FREE} AS free, task.last_seq, task.context_id,
            CASE WHEN p.disabled_reason = '' AND p.paused_at IS NULL AND p.cursor < task.last_seq
                THEN coalesce(p.due_at, {_NOW}) ELSE p.due_at END AS due_at
        FROM tasks_app_pushconfig p JOIN task ON task.id = p.task_id
        WHERE p.cursor < task.last_seq OR p.due_at IS NOT NULL
        ORDER BY p.task_id, p.config_id FOR NO KEY UPDATE OF p
    ), ranked AS (
        SELECT *, free AND due_at <= {_NOW} AND row_number() OVER (
                PARTITION BY free AND due_at <= {_NOW}, attempts > 0 ORDER BY due_at
            ) <= CASE WHEN attempts > 0 THEN %(failing)s ELSE %(healthy)s END AS taken
        FROM config
    ), moved AS (
        UPDATE tasks_app_pushconfig p SET last_seq = greatest(p.last_seq, r.last_seq), due_at = r.due_at,
            claim = CASE WHEN r.taken THEN p.claim + 1 ELSE p.claim END,
            lease_until = CASE WHEN r.taken THEN {_NOW} + %(lease)s ELSE p.lease_until END
        FROM ranked r WHERE p.task_id = r.task_id AND p.config_id = r.config_id
        RETURNING p.*, r.context_id, r.taken
    ), cleared AS (
        UPDATE tasks_app_task t SET push_due_at = NULL FROM task WHERE t.id = task.id AND task.push_due_at IS NOT NULL
    )
    SELECT task.id, m.config_id, m.url, m.token, m.scheme, m.credentials, m.version, m.claim, m.cursor, m.attempts,
        m.context_id, m.resend,
        CASE WHEN m.disabled_reason = '' AND m.paused_at IS NULL THEN m.last_seq ELSE m.cursor END
    FROM task LEFT JOIN moved m ON m.task_id = task.id AND m.taken"""

# What came of some requests: the ledger, and the cursor or the next try, in one statement. It may run twice: everything
# is set to a value, and the ledger's newest row tells whether it has been there.
_STORE = f"""WITH outcome AS (
        SELECT * FROM unnest(%(task_id)s::text[], %(config_id)s::text[], %(claim)s::int[], %(kind)s::smallint[],
            %(seq)s::int[], %(attempt)s::int[], %(at)s::timestamptz[], %(duration_ms)s::int[], %(status)s::smallint[],
            %(error)s::text[], %(response)s::text[], %(wait)s::interval[], %(at_once)s::text[], %(too_long)s::text[])
        AS o(task_id, config_id, claim, kind, seq, attempt, at, duration_ms, status, error, response, wait, at_once,
            too_long)
    ), held AS MATERIALIZED (
        SELECT o.*, p.last_seq, o.kind = {EVENT} AND o.error = '' AS went, o.kind = {EVENT} AND o.error <> '' AS failed,
            CASE WHEN o.kind = {EVENT} AND o.error = '' THEN o.seq ELSE p.cursor END AS cursor,
            coalesce(p.failing_since, o.at) AS since, p.disabled_reason = '' AND p.paused_at IS NULL AS active,
            CASE WHEN o.kind = {EVENT} THEN p.resend ELSE array_remove(p.resend, o.seq) END AS resend
        FROM tasks_app_pushconfig p JOIN outcome o ON o.task_id = p.task_id AND o.config_id = p.config_id
        WHERE o.claim = p.claim ORDER BY p.task_id, p.config_id FOR NO KEY UPDATE OF p
    ), judged AS (
        SELECT *, CASE WHEN at_once <> '' THEN at_once
            WHEN failed AND {_NOW} >= since + %(give_up)s THEN too_long ELSE '' END AS reason FROM held
    ), planned AS (
        SELECT *, CASE WHEN resend <> '{{}}' THEN {_NOW}
            WHEN NOT active OR reason <> '' THEN NULL
            WHEN failed THEN least({_NOW} + wait, since + %(give_up)s)
            WHEN cursor < last_seq THEN {_NOW} END AS next_at FROM judged
    ), moved AS (
        UPDATE tasks_app_pushconfig p SET cursor = j.cursor, resend = j.resend, due_at = j.next_at,
            lease_until = CASE WHEN j.next_at IS NOT NULL AND NOT j.failed THEN {_NOW} + %(lease)s END,
            attempts = CASE WHEN j.went THEN 0 WHEN j.failed THEN j.attempt ELSE p.attempts END,
            failing_since = CASE WHEN j.went THEN NULL WHEN j.failed THEN j.since ELSE p.failing_since END,
            last_error = CASE WHEN j.kind = {EVENT} THEN j.error ELSE p.last_error END,
            disabled_reason = CASE WHEN j.reason = '' THEN p.disabled_reason ELSE j.reason END,
            disabled_at = CASE WHEN j.reason = '' THEN p.disabled_at ELSE coalesce(p.disabled_at, {_NOW}) END
        FROM planned j WHERE p.task_id = j.task_id AND p.config_id = j.config_id
        RETURNING p.task_id, p.config_id, p.claim, p.resend,
            CASE WHEN p.disabled_reason = '' AND p.paused_at IS NULL THEN p.last_seq ELSE p.cursor END AS wanted
    ), ledger AS (
        INSERT INTO tasks_app_delivery (task_id, config_id, kind, seq, attempt, at, duration_ms, status, error,
            response, next_at)
        SELECT o.task_id, o.config_id, o.kind, o.seq, o.attempt, o.at, o.duration_ms, o.status, o.error, o.response,
            CASE WHEN p.failed THEN p.next_at END
        FROM outcome o LEFT JOIN planned p ON p.task_id = o.task_id AND p.config_id = o.config_id AND p.claim = o.claim
        WHERE EXISTS (SELECT FROM tasks_app_task t WHERE t.id = o.task_id)
            AND o.at IS DISTINCT FROM (SELECT d.at FROM tasks_app_delivery d
                WHERE d.task_id = o.task_id AND d.config_id = o.config_id ORDER BY d.id DESC LIMIT 1)
    )
    SELECT task_id, config_id, claim, wanted, resend FROM moved"""
_RELEASE = f"""UPDATE tasks_app_pushconfig p SET lease_until = NULL, due_at = CASE WHEN p.resend <> '{{}}'
        OR (p.disabled_reason = '' AND p.paused_at IS NULL AND p.cursor < p.last_seq)
        THEN greatest(p.due_at, {_NOW} + %(wait)s) END
    FROM (SELECT p.task_id, p.config_id FROM unnest(%(task_id)s::text[], %(config_id)s::text[], %(claim)s::int[])
            AS c(task_id, config_id, claim)
        JOIN tasks_app_pushconfig p ON p.task_id = c.task_id AND p.config_id = c.config_id AND p.claim = c.claim
        ORDER BY p.task_id, p.config_id FOR NO KEY UPDATE OF p) AS held
    WHERE p.task_id = held.task_id AND p.config_id = held.config_id RETURNING p.claim"""
# Indexes: task_push_due, push_config_due.
_WAITING = f"""SELECT id FROM (SELECT id FROM tasks_app_task WHERE push_due_at < now() - %(older)s
        ORDER BY push_due_at LIMIT %(healthy)s) AS noted
    UNION SELECT task_id FROM (SELECT task_id FROM tasks_app_pushconfig WHERE due_at <= {_NOW} AND {_FREE}
        AND attempts = 0 ORDER BY due_at LIMIT %(healthy)s) AS due
    UNION SELECT task_id FROM (SELECT task_id FROM tasks_app_pushconfig WHERE due_at <= {_NOW} AND {_FREE}
        AND attempts > 0 ORDER BY due_at LIMIT %(failing)s) AS failing"""


@dataclass(frozen=True, slots=True)
class Room:
    """How many more configs may be claimed, of those that are well and of those that failed last time."""

    healthy: int
    failing: int


@dataclass(frozen=True, slots=True)
class Claim:
    """One config that is this process's to deliver to; `token` and `credentials` are encrypted.

    Events beyond `cursor` up to `wanted` wait, and those in `resend` are to be sent again.
    """

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
    resend: Sequence[int]
    wanted: int

    @property
    def name(self) -> str:
        """Unlike that of any other config."""
        return f"{self.task_id} {self.config_id}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one request: `error` is empty if the receiver took it. `kind` is one of EVENT, AGAIN, TEST."""

    claim: Claim
    kind: int
    seq: int
    attempt: int
    at: datetime
    duration_ms: int
    status: int | None
    error: str
    response: str


@dataclass(frozen=True, slots=True)
class Next:
    """What is left to do under a claim."""

    wanted: int
    resend: Sequence[int]


class PushQueue:
    """The statements, for one process. `clock` says the time for tests; else that of the database counts."""

    def __init__(self, store: Store, clock: Callable[[], datetime | None] = lambda: None) -> None:
        self._store = store
        self._clock = clock

    async def take(self, task_ids: Sequence[str], room: Room) -> tuple[list[Claim], list[str]]:
        """Claim due configs of some tasks. Also says which of the tasks nobody could look at now."""
        rows = await self._store.query(
            _TAKE,
            {"now": self._clock(), "ids": list(task_ids), "lease": LEASE}
            | {"healthy": room.healthy, "failing": room.failing},
        )
        claims = [Claim(*row) for row in rows if row[1] is not None]
        seen = {row[0] for row in rows}
        return claims, [task_id for task_id in task_ids if task_id not in seen]

    async def waiting(self, room: Room, older_than: timedelta) -> list[str]:
        """Ids of tasks whose events nobody has looked at for so long, or with a config whose next attempt is due."""
        parameters = {"now": self._clock(), "older": older_than, "healthy": room.healthy, "failing": room.failing}
        return [row[0] for row in await self._store.query(_WAITING, parameters)]

    async def store(self, outcomes: Sequence[Outcome]) -> list[Next | None]:
        """Write what came of requests to several configs; what is next for each, None where the claim is lost."""
        columns: dict[str, list[object]] = {name: [] for name in _COLUMNS}
        for outcome in outcomes:
            for name, value in zip(_COLUMNS, _values(outcome), strict=True):
                columns[name].append(value)
        parameters = {"now": self._clock(), "lease": LEASE, "give_up": GIVE_UP}
        rows = await self._store.query(_STORE, columns | parameters)
        found = {row[:3]: Next(row[3], row[4]) for row in rows}
        return [found.get((o.claim.task_id, o.claim.config_id, o.claim.number)) for o in outcomes]

    async def release(self, claims: Iterable[Claim], wait: timedelta = timedelta()) -> None:
        """Let somebody else deliver what is left, if anything is, at once or after a while."""
        held = list(claims)
        if held:
            columns = {"task_id": [c.task_id for c in held], "config_id": [c.config_id for c in held]}
            numbers = {"claim": [c.number for c in held], "wait": wait, "now": self._clock()}
            await self._store.query(_RELEASE, columns | numbers)


_COLUMNS = (
    *("task_id", "config_id", "claim", "kind", "seq", "attempt", "at", "duration_ms", "status", "error", "response"),
    *("wait", "at_once", "too_long"),
)


def _values(outcome: Outcome) -> tuple[object, ...]:
    claim = outcome.claim
    at_once, too_long = reason_of(outcome.status, outcome.error)
    return (
        *(claim.task_id, claim.config_id, claim.number, outcome.kind, outcome.seq, outcome.attempt, outcome.at),
        *(outcome.duration_ms, outcome.status, outcome.error, outcome.response),
        *(retry_after(outcome.attempt, claim.name), at_once, too_long),
    )
