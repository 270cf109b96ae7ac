"""The journal: what is written together, who wins, and what a loser changes (nothing)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents.registry import AgentEntry
from protocol.errors import InternalError
from protocol.states import TaskState
from tasks_app.journal import Acceptance, AuditLine
from tasks_app.journal.leases import LEASE, RING_AGAIN
from tasks_app.journal.writer import BATCH_ROWS, ENOUGH_ROWS
from tests.tasks_app.world import ALICE, World, soon
from tests.tasks_app.writes import START, WORKER, Desk, change, creation, entry, open_desk


async def transactions(world: World, table: str = "task") -> int:
    """How many transactions wrote the rows of a table."""
    ((number,),) = await world.query(f"SELECT count(DISTINCT xmin::text) FROM tasks_app_{table}")
    return int(number)


async def test_what_waits_is_written_in_one_statement(world: World, desk: Desk, agent: AgentEntry) -> None:
    """The first do not wait for all."""
    writes = [creation(agent.id) for _ in range(100)]
    assert await desk.submit(*writes) == [True] * 100
    assert await transactions(world) == 2
    assert await transactions(world, "message") == 2
    assert desk.published == [writes[:ENOUGH_ROWS], writes[ENOUGH_ROWS:]]


async def test_what_comes_at_one_moment_is_written_in_one_statement(
    world: World, desk: Desk, agent: AgentEntry
) -> None:
    writes = [creation(agent.id) for _ in range(ENOUGH_ROWS)]
    assert await desk.submit(*writes) == [True] * ENOUGH_ROWS
    assert await transactions(world) == 1
    assert desk.published == [writes]


async def test_many_that_wait_are_sent_before_the_answers_to_those_before_them(world: World, agent: AgentEntry) -> None:
    """What those say who are answered comes too late for the next statement, unless only few wait for that."""
    for waiting, batches in ((ENOUGH_ROWS, [ENOUGH_ROWS, ENOUGH_ROWS, 1]), (2, [ENOUGH_ROWS, 2 + 1])):
        async with open_desk(world.dsn) as desk:
            answer = creation(agent.id)
            writes = [creation(agent.id) for _ in range(ENOUGH_ROWS + waiting)]
            told = desk.journal.submit(writes[0])
            told.add_done_callback(lambda _, desk=desk, answer=answer: desk.journal.submit(answer))
            assert await desk.submit(*writes[1:]) == [True] * (len(writes) - 1)
            await soon(answer.done)
        assert [len(batch) for batch in desk.published] == batches


async def test_creations_and_changes_share_a_statement(world: World, desk: Desk, agent: AgentEntry) -> None:
    old = [creation(agent.id) for _ in range(3)]
    await desk.submit(*old)
    new = creation(agent.id)
    assert await desk.submit(new, *(change(c.task_id, 1) for c in old)) == [True] * 4
    ((number,),) = await world.query(
        "SELECT count(DISTINCT xmin) FROM (SELECT xmin::text FROM tasks_app_task UNION ALL"
        " SELECT xmin::text FROM tasks_app_event) AS rows"
    )
    assert number == 1


async def test_a_batch_has_a_limit(world: World, desk: Desk, agent: AgentEntry) -> None:
    writes = [creation(agent.id) for _ in range(2 * BATCH_ROWS + 1)]
    assert await desk.submit(*writes) == [True] * len(writes)
    assert await transactions(world) == 3
    assert [len(batch) for batch in desk.published] == [ENOUGH_ROWS, BATCH_ROWS, BATCH_ROWS + 1 - ENOUGH_ROWS]
    assert [w for batch in desk.published for w in batch] == writes


async def test_a_batch_of_large_bodies_is_cut(world: World, desk: Desk, agent: AgentEntry) -> None:
    large = '{"messageId":"m","role":"ROLE_USER","parts":[{"text":"' + "x" * 1_500_000 + '"}]}'
    writes = [creation(agent.id, message=entry(1, f"m-{n}", 1, large)) for n in range(6)]
    assert await desk.submit(*writes) == [True] * 6
    assert await transactions(world) == 2
    assert await world.query("SELECT DISTINCT length(body) FROM tasks_app_message") == [(len(large),)]


async def test_a_creation_is_stored_as_given(world: World, desk: Desk, agent: AgentEntry) -> None:
    new = creation(agent.id, "m-1", request='{"extensions":["a \\"quoted\\" one"]}', context_id='a"b\\c{d},NULL')
    assert await desk.submit(new) == [True]
    columns = (
        "agent_id, owner, context_id, state, status, status_at, created_at, metadata, last_seq, message_count, version,"
        " attempt, worker, dialect, request, cancel_requested_at"
    )
    assert await world.query(f"SELECT {columns} FROM tasks_app_task WHERE id = %s", [new.task_id]) == [
        (
            *(agent.id, ALICE, 'a"b\\c{d},NULL', TaskState.SUBMITTED.number, new.status, new.created_at),
            *(new.created_at, None, 0, 1, 1, 1, WORKER, "JSONRPC/1.0", new.request, None),
        )
    ]
    run = await world.query("SELECT started_at, deadline_at, parent_id FROM tasks_app_task")
    assert run == [(new.created_at, None, None)]
    assert await world.query("SELECT task_id, position, message_id, role, body, search FROM tasks_app_message") == [
        (new.task_id, 1, "m-1", 1, new.message.body, "hi")
    ]
    assert await world.query("SELECT agent_id, owner, message_id, task_id, digest FROM tasks_app_receipt") == [
        (agent.id, ALICE, "m-1", new.task_id, "same")
    ]


async def test_a_task_may_have_a_parent_and_a_deadline(world: World, desk: Desk, agent: AgentEntry) -> None:
    """It is queued: nobody has begun. A change keeps the deadline, unless it has one of its own."""
    due = START + timedelta(hours=1)
    new = creation(agent.id, parent_id="parent", deadline_at=due, worker=None)
    assert await desk.submit(new) == [True]
    columns = "SELECT started_at, deadline_at, parent_id FROM tasks_app_task"
    assert await world.query(columns) == [(None, due, "parent")]
    assert await desk.submit(change(new.task_id, 1, worker=None)) == [True]
    assert await world.query(columns) == [(None, due, "parent")]
    later = due + timedelta(hours=1)
    assert await desk.submit(change(new.task_id, 2, worker=None, deadline_at=later)) == [True]
    assert await world.query(columns) == [(None, later, "parent")]


async def test_who_holds_a_task_and_until_when(world: World, desk: Desk, agent: AgentEntry) -> None:
    """A process gives leases to itself only; what is queued is called for again; what has ended is held by nobody."""

    async def lease() -> tuple[Any, ...]:
        (row,) = await world.query("SELECT lease_until, started_at, now() FROM tasks_app_task")
        return row

    new = creation(agent.id, worker=None)
    await desk.submit(new)
    until, _, at = await lease()
    assert RING_AGAIN - timedelta(seconds=2) < until - at <= RING_AGAIN
    await desk.submit(change(new.task_id, 1, TaskState.SUBMITTED, seqs=[]))
    until, started, _ = await lease()
    assert until - started == LEASE, "both are of the moment of the claim"
    await desk.submit(change(new.task_id, 2, old_state=TaskState.SUBMITTED))
    extended, *_ = await lease()
    assert extended > until
    await desk.submit(change(new.task_id, 3, new_attempt=2, worker="web-other"))
    assert (await lease())[0] == extended, "that one's own heartbeat extends it"
    due = START + timedelta(days=1)
    await desk.submit(change(new.task_id, 4, attempt=2, deadline_at=due))
    assert (await lease())[0] == due
    await desk.submit(change(new.task_id, 5, TaskState.INPUT_REQUIRED, attempt=2))
    assert (await lease())[0] == due
    await desk.submit(change(new.task_id, 6, attempt=2, old_state=TaskState.INPUT_REQUIRED, worker=None))
    assert (await lease())[0] == due
    await desk.submit(change(new.task_id, 7, TaskState.CANCELED, attempt=2, worker=None))
    assert (await lease())[0] is None


async def test_a_change_is_stored_as_given(world: World, desk: Desk, agent: AgentEntry) -> None:
    new = creation(agent.id)
    await desk.submit(new)
    said = entry(2, "a-1", body='{"text":"tab\\t \\u0000 \\\\ \\" 你好"}')
    acceptance = Acceptance(agent.id, ALICE, "m-2", "digest-2")
    update = change(
        new.task_id,
        1,
        seqs=[1, 2],
        messages=[said],
        metadata='{"n":1.0}',
        new_attempt=2,
        request='{"x":1}',
        acceptance=acceptance,
    )
    assert await desk.submit(update) == [True]
    columns = "state, status, status_at, metadata, last_seq, message_count, version, attempt, request"
    assert await world.query(f"SELECT {columns} FROM tasks_app_task") == [
        (TaskState.WORKING.number, update.status, update.status_at, '{"n":1.0}', 2, 2, 2, 2, '{"x":1}')
    ]
    assert await world.query("SELECT seq, kind, body, attempt, created_at FROM tasks_app_event ORDER BY seq") == [
        (1, 1, update.status, 1, update.status_at),
        (2, 1, update.status, 1, update.status_at),
    ]
    assert await world.query("SELECT message_id, body FROM tasks_app_message WHERE position = 2") == [
        ("a-1", said.body)
    ]
    assert await world.query("SELECT message_id, task_id, digest FROM tasks_app_receipt") == [
        ("m-2", new.task_id, "digest-2")
    ]


async def test_a_change_without_a_request_keeps_the_stored_one(world: World, desk: Desk, agent: AgentEntry) -> None:
    new = creation(agent.id, request='{"kept":true}')
    await desk.submit(new)
    await desk.submit(change(new.task_id, 1))
    assert await world.query("SELECT request FROM tasks_app_task") == [('{"kept":true}',)]


async def test_who_did_it_is_stored_with_the_change_or_not_at_all(world: World, desk: Desk, agent: AgentEntry) -> None:
    tasks = [creation(agent.id) for _ in range(3)]
    await desk.submit(*tasks)
    lines = [AuditLine(f"ada {n}", "task.approve", "echo", 'It\'s "{done}", \\ NULL.') for n in range(2)]
    won = change(tasks[0].task_id, 1, audit=lines[0])
    stale = change(tasks[1].task_id, 2, audit=lines[1])
    assert await desk.submit(won, stale, change(tasks[2].task_id, 1)) == [True, False, True]
    assert await world.query("SELECT actor, action, agent, task_id, detail FROM tasks_app_auditentry") == [
        ("ada 0", "task.approve", "echo", tasks[0].task_id, lines[0].detail)
    ]
    ((same,),) = await world.query(
        "SELECT a.xmin::text = t.xmin::text FROM tasks_app_auditentry a JOIN tasks_app_task t ON t.id = a.task_id"
    )
    assert same


@pytest.mark.parametrize(
    "wrong", [{"version": 1}, {"version": 3}, {"attempt": 2}, {"attempt": 0}, {"task_id": "absent"}], ids=str
)
async def test_a_stale_change_loses_and_changes_nothing(
    world: World, desk: Desk, agent: AgentEntry, wrong: dict[str, int | str]
) -> None:
    new, neighbour = creation(agent.id), creation(agent.id)
    await desk.submit(new, neighbour)
    await desk.submit(change(new.task_id, 1))
    before = await world.dump()
    acceptance = Acceptance(agent.id, ALICE, "never-taken", "digest")
    task_id, version = str(wrong.get("task_id", new.task_id)), int(wrong.get("version", 2))
    attempt = int(wrong.get("attempt", 1))
    stale = change(
        task_id, version, TaskState.COMPLETED, seqs=[2, 3], attempt=attempt, new_attempt=9,
        messages=[entry(2, "never-said")], acceptance=acceptance, request='{"never":1}',
    )  # fmt: skip
    assert await desk.submit(stale) == [False]
    assert await world.dump() == before

    assert await desk.submit(stale, change(neighbour.task_id, 1)) == [False, True], "its neighbour is not harmed"
    rows = await world.query("SELECT id, version FROM tasks_app_task WHERE id = %s", [neighbour.task_id])
    assert rows == [(neighbour.task_id, 2)]


async def test_a_loser_is_not_published(world: World, desk: Desk, agent: AgentEntry) -> None:
    new = creation(agent.id)
    await desk.submit(new)
    winner = change(new.task_id, 1)
    await desk.submit(winner)
    outcome: list[bool | None] = []
    loser = change(new.task_id, 1, stored=outcome.append)
    await desk.submit(loser)
    assert outcome == [False]
    assert [w for batch in desk.published for w in batch] == [new, winner]


async def test_a_repeated_acceptance_loses(world: World, desk: Desk, agent: AgentEntry) -> None:
    first, other = creation(agent.id, "m-1"), creation(agent.id, "m-2")
    assert await desk.submit(first, other) == [True, True]
    before = await world.dump()
    assert await desk.submit(creation(agent.id, "m-1", digest="of other content")) == [False]
    assert await world.dump() == before


async def test_a_message_repeated_in_one_batch_wins_once(world: World, desk: Desk, agent: AgentEntry) -> None:
    twins = [creation(agent.id, "m-1") for _ in range(20)]
    outcomes = await desk.submit(*twins)
    assert sorted(map(bool, outcomes)) == [False] * 19 + [True]
    winner = twins[outcomes.index(True)]
    assert await world.query("SELECT id FROM tasks_app_task") == [(winner.task_id,)]
    assert await world.query("SELECT task_id FROM tasks_app_receipt") == [(winner.task_id,)]
    assert await world.query("SELECT task_id FROM tasks_app_message") == [(winner.task_id,)]


async def test_a_message_id_is_an_owners_and_an_agents_own(world: World, desk: Desk, agent: AgentEntry) -> None:
    other = await world.add_agent()
    writes = [
        creation(agent.id, "m-1"),
        creation(other.id, "m-1"),
        creation(agent.id, owner="bob", acceptance=Acceptance(agent.id, "bob", "m-1", "same")),
    ]
    assert await desk.submit(*writes) == [True, True, True]


async def test_without_an_acceptance_the_same_message_is_two_tasks(world: World, desk: Desk, agent: AgentEntry) -> None:
    message = entry(1, "m-1", 1)
    assert await desk.submit(*(creation(agent.id, message=message) for _ in range(2))) == [True, True]
    assert await world.query("SELECT count(*) FROM tasks_app_task") == [(2,)]


async def test_only_the_refused_write_of_a_batch_fails(world: World, desk: Desk, agent: AgentEntry) -> None:
    old = [creation(agent.id) for _ in range(3)]
    await desk.submit(*old)
    outcome: list[bool | None] = []
    # Its event is there already: the unique constraint refuses the whole statement.
    await world.query(
        "INSERT INTO tasks_app_event (task_id, seq, kind, body, append, last_chunk, attempt, created_at)"
        " VALUES (%s, 1, 1, '{}', false, false, 1, now())",
        [old[1].task_id],
    )
    culprit = change(old[1].task_id, 1, stored=outcome.append)
    new = creation(agent.id)
    first, refused, last, created = await desk.submit(
        change(old[0].task_id, 1), culprit, change(old[2].task_id, 1), new
    )
    assert (first, last, created) == (True, True, True)
    assert isinstance(refused, InternalError)
    assert refused.message == "Internal error", "no word of the database's"
    assert outcome == [None], "neither won nor lost"
    rows = await world.query("SELECT id, version FROM tasks_app_task")
    assert dict(rows) == {old[0].task_id: 2, old[1].task_id: 1, old[2].task_id: 2, new.task_id: 1}
    assert [w for batch in desk.published[1:] for w in batch if w is culprit] == []


@pytest.mark.parametrize("place", ["context_id", "owner", "status", "worker"])
async def test_text_that_postgresql_cannot_hold_is_refused_alone(
    world: World, desk: Desk, agent: AgentEntry, place: str
) -> None:
    good, bad = creation(agent.id), creation(agent.id, **{place: "nul \0"})
    outcomes = await desk.submit(bad, good)
    assert isinstance(outcomes[0], InternalError)
    assert outcomes[1] is True
    assert await world.query("SELECT id FROM tasks_app_task") == [(good.task_id,)]


async def test_a_key_that_is_too_long_is_refused_alone(world: World, desk: Desk, agent: AgentEntry) -> None:
    good, bad = creation(agent.id), creation(agent.id, context_id="x" * 256)
    outcomes = await desk.submit(good, bad)
    assert outcomes[0] is True
    assert isinstance(outcomes[1], InternalError)
    assert await world.query("SELECT id FROM tasks_app_task") == [(good.task_id,)]


async def test_two_writes_of_one_version_in_one_batch(world: World, desk: Desk, agent: AgentEntry) -> None:
    """One wins: nobody may believe that a write of theirs is stored when another one is."""
    new = creation(agent.id)
    await desk.submit(new)
    rivals = [change(new.task_id, 1, worker=f"worker-{n}") for n in range(2)]
    assert sorted(map(bool, await desk.submit(*rivals))) == [False, True]
    winner = rivals[0] if rivals[0].done.result() else rivals[1]
    assert await world.query("SELECT version, worker FROM tasks_app_task") == [(2, winner.worker)]
    assert await world.query("SELECT seq FROM tasks_app_event") == [(1,)]


async def test_two_claims_of_one_version_in_one_batch(world: World, desk: Desk, agent: AgentEntry) -> None:
    """Claims have no events that would collide: they are told apart all the same."""
    new = creation(agent.id, worker=None)
    await desk.submit(new)
    rivals = [change(new.task_id, 1, TaskState.SUBMITTED, seqs=[], worker=f"worker-{n}") for n in range(3)]
    assert sorted(map(bool, await desk.submit(*rivals))) == [False, False, True]
    winner = next(r for r in rivals if r.done.result())
    assert await world.query("SELECT version, worker FROM tasks_app_task") == [(2, winner.worker)]
