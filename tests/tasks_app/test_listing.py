"""ListTasks (§3.1.4): filters, pages, counts, and whose tasks they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.core import signing

from agents.keys import ANONYMOUS
from agents.registry import AgentEntry
from agents.runtimes.base import Caller, Run, Updates
from protocol.errors import InvalidParamsError, TaskNotFoundError
from protocol.requests import GetTaskRequest, ListTasksRequest
from protocol.states import TaskState
from tasks_app.operations import Call, TaskPage, get_task, list_tasks, send_message
from tests.tasks_app.checks import check_counters
from tests.tasks_app.world import World, chunk, request, say, soon
from tests.tasks_app.writes import START, change, creation, open_desk

pytestmark = pytest.mark.spec("3.1.4")

STATES = {
    "work": TaskState.WORKING,
    "done": TaskState.COMPLETED,
    "ask": TaskState.INPUT_REQUIRED,
    "no": TaskState.REJECTED,
}


async def listed(call: Call, **fields: Any) -> TaskPage:
    page: TaskPage = await soon(list_tasks(call, ListTasksRequest(**fields)))
    return page


async def walk(call: Call, size: int, **fields: Any) -> list[TaskPage]:
    """All pages of a query."""
    pages = [await listed(call, page_size=size, **fields)]
    while pages[-1].next_page_token:
        pages.append(await listed(call, page_size=size, page_token=pages[-1].next_page_token, **fields))
    return pages


def ids_of(pages: Sequence[TaskPage]) -> list[str]:
    return [r.id for page in pages for r in page.records]


async def store_tasks(
    world: World, agent: AgentEntry, plan: Sequence[tuple[TaskState, int, str]], **fields: Any
) -> list[str]:
    """Tasks of (state, second of the status, context); their ids in the order of the plan."""
    async with open_desk(world.dsn) as desk:
        tasks = [creation(agent.id, context_id=context, **fields) for _, _, context in plan]
        await desk.submit(*tasks)
        await desk.submit(
            *(
                change(c.task_id, 1, state, at=START + timedelta(seconds=second))
                for c, (state, second, _) in zip(tasks, plan, strict=True)
                if state is not TaskState.SUBMITTED
            )
        )
    return [t.task_id for t in tasks]


async def test_newest_status_first_and_the_id_breaks_ties(world: World) -> None:
    agent = await world.add_agent()
    seconds = [3, 1, 2, 2, 3, 0]
    ids = await store_tasks(world, agent, [(TaskState.WORKING, s, "c") for s in seconds])
    expected = [i for _, i in sorted(zip(seconds, ids, strict=True), reverse=True)]
    for size in (1, 2, 4, 6, 100):
        pages = await walk(world.call(agent), size)
        assert ids_of(pages) == expected
        assert {p.total_size for p in pages} == {6}
        assert [len(p.records) for p in pages[:-1]] == [size] * (len(pages) - 1)
        assert pages[-1].records


async def test_fifty_unless_asked_for(world: World) -> None:
    agent = await world.add_agent()
    await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(51)])
    page = await listed(world.call(agent))
    assert (len(page.records), page.page_size, page.total_size, bool(page.next_page_token)) == (50, 50, 51, True)
    last = await listed(world.call(agent), page_token=page.next_page_token)
    assert (len(last.records), last.next_page_token) == (1, "")


async def test_a_full_last_page_has_no_next_one(world: World) -> None:
    agent = await world.add_agent()
    await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(4)])
    page = await listed(world.call(agent), page_size=4)
    assert (len(page.records), page.next_page_token) == (4, "")


async def test_nothing_to_list(world: World) -> None:
    agent = await world.add_agent()
    page = await listed(world.call(agent))
    assert json.loads(page.payload()) == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


async def test_every_combination_of_filters(world: World) -> None:
    """Against a plain count over all rows."""
    agent = await world.add_agent()
    states = [TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED]
    plan = [(states[n % 4], n % 7, f"context-{n % 3}") for n in range(60)]
    ids = await store_tasks(world, agent, plan)
    for status in (None, TaskState.UNSPECIFIED, TaskState.SUBMITTED, TaskState.COMPLETED, TaskState.CANCELED):
        for context in ("", "context-1", "context-9"):
            for second in (None, 3, 99):
                after = None if second is None else START + timedelta(seconds=second)
                expected = [
                    i
                    for i, (state, at, its) in zip(ids, plan, strict=True)
                    if status in (None, TaskState.UNSPECIFIED, state)
                    and context in ("", its)
                    and (second is None or (0 if state is TaskState.SUBMITTED else at) >= second)
                ]
                pages = await walk(
                    world.call(agent), 7, status=status, context_id=context, status_timestamp_after=after
                )
                assert sorted(ids_of(pages)) == sorted(expected)
                assert {p.total_size for p in pages} == {len(expected)}


async def test_a_status_at_that_very_time_is_after_it(world: World) -> None:
    """What a caller saw, with its milliseconds, finds the task again."""
    agent = await world.add_agent()
    call = world.call(agent)
    answer = await soon(send_message(call, request()))
    seen = json.loads(answer.payload())["task"]["status"]["timestamp"]
    at = answer.record.status_at
    assert seen == at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"
    assert ids_of([await listed(call, status_timestamp_after=at)]) == [answer.record.id]
    assert ids_of([await listed(call, status_timestamp_after=at + timedelta(milliseconds=1))]) == []


async def test_a_walk_while_tasks_change(world: World) -> None:
    """What does not change is listed exactly once; what changes moves to the front, and nothing comes twice."""
    agent = await world.add_agent()
    ids = await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(40)])
    call = world.call(agent)
    seen: list[str] = []
    changed: set[str] = set()
    page = await listed(call, page_size=4)
    async with open_desk(world.dsn) as desk:
        for turn in range(30):
            seen += [r.id for r in page.records]
            if not page.next_page_token:
                break
            victim = ids[(turn * 11) % 40]
            if victim not in changed:
                changed.add(victim)
                await desk.submit(change(victim, 2, TaskState.COMPLETED, at=START + timedelta(seconds=100 + turn)))
                newer = START + timedelta(seconds=200 + turn)
                await desk.submit(creation(agent.id, context_id="new", created_at=newer))
            page = await listed(call, page_size=4, page_token=page.next_page_token)
    assert len(set(seen)) == len(seen)
    assert set(ids) - changed <= set(seen)
    assert set(seen) <= set(ids), "what is newer than the first page is not in the walk"


async def test_a_walk_counts_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The total of a narrow query belongs to the walk, as its tasks do; the counters of a wide one are always new."""
    agent = await world.add_agent()
    ids = await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(6)])
    counts = 0
    query = world.hosts[0].store.query

    async def watched(sql: str, parameters: Any) -> list[tuple[Any, ...]]:
        nonlocal counts
        counts += "count(*)" in sql
        return await query(sql, parameters)

    monkeypatch.setattr(world.hosts[0].store, "query", watched)
    call = world.call(agent)
    narrow: list[dict[str, Any]] = [{"context_id": "c"}, {"status_timestamp_after": START}]
    narrow.append({"context_id": "c", "status": TaskState.WORKING})
    first = [await listed(call, page_size=2, **fields) for fields in narrow]
    wide = await listed(call, page_size=2)
    assert ([page.total_size for page in first], wide.total_size, counts) == ([6, 6, 6], 6, 3)
    await store_tasks(world, agent, [(TaskState.WORKING, 9, "c")])
    for page, fields in zip(first, narrow, strict=True):
        second = await listed(call, page_size=2, page_token=page.next_page_token, **fields)
        third = await listed(call, page_size=2, page_token=second.next_page_token, **fields)
        assert (second.total_size, third.total_size, third.next_page_token) == (6, 6, "")
        assert sorted(ids_of([page, second, third])) == sorted(ids)
    assert (await listed(call, page_size=2, page_token=wide.next_page_token)).total_size == 7
    assert counts == 3
    assert [(await listed(call, page_size=2, **fields)).total_size for fields in narrow] == [7, 7, 7]


@pytest.mark.parametrize("fields", [{"context_id": "c"}, {}])
async def test_a_token_is_read_by_the_version_before_and_read_from_it(world: World, fields: dict[str, Any]) -> None:
    """As in a rolling upgrade: it knows of no total, signs and reads a list of three, and compares the last."""
    agent = await world.add_agent()
    ids = await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(3)])
    call = world.call(agent)
    page = await listed(call, page_size=2, **fields)
    microseconds, task_id, binding = signing.loads(page.next_page_token, salt="a2a.ListTasks")
    assert (microseconds, task_id) == (round(START.timestamp() * 1_000_000) + 1_000_000, ids[1])
    old = signing.dumps([microseconds, task_id, binding], salt="a2a.ListTasks")
    other = await listed(call, page_size=1, **fields)
    assert signing.loads(other.next_page_token, salt="a2a.ListTasks")[2] == binding, "the same for the same query"
    await store_tasks(world, agent, [(TaskState.WORKING, 9, "c")])
    last = await listed(call, page_size=2, page_token=old, **fields)
    assert (ids_of([last]), last.total_size) == ([ids[0]], 4)


async def test_a_token_is_good_for_its_query_only(world: World) -> None:
    agent, other = await world.add_agent(), await world.add_agent()
    await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(5)])
    await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(5)], owner="bob")
    call = world.call(agent)
    page = await listed(call, page_size=2, context_id="c")
    token = page.next_page_token
    assert len((await listed(call, page_size=3, context_id="c", page_token=token)).records) == 3, "another size is fine"
    more = {"history_length": 1, "include_artifacts": True}
    assert len((await listed(call, page_size=2, context_id="c", page_token=token, **more)).records) == 2
    for wrong, fields in (
        (call, {}),
        (call, {"context_id": "d"}),
        (call, {"context_id": "c", "status": TaskState.WORKING}),
        (call, {"context_id": "c", "status_timestamp_after": START}),
        (world.call(agent, "bob"), {"context_id": "c"}),
        (world.call(other), {"context_id": "c"}),
    ):
        with pytest.raises(InvalidParamsError) as refused:
            await listed(wrong, page_size=2, page_token=token, **fields)
        assert [(v.field, v.description) for v in refused.value.violations] == [
            ("pageToken", "was made for another query")
        ]


@pytest.mark.parametrize(
    "change_token",
    [
        lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"),
        lambda t: "A" + t,
        lambda t: t.split(":")[0],
        lambda t: "abc",
        lambda t: "ü:ü:ü",
        lambda t: ":::",
        lambda t: t + "\0",
        lambda t: "x" * 100_000,
    ],
    ids=["last letter", "first letter", "unsigned", "no token", "other letters", "colons", "U+0000", "long"],
)
async def test_a_token_that_was_not_made_here(world: World, change_token: Any) -> None:
    agent = await world.add_agent()
    await store_tasks(world, agent, [(TaskState.WORKING, n, "c") for n in range(3)])
    page = await listed(world.call(agent), page_size=1)
    with pytest.raises(InvalidParamsError) as refused:
        await listed(world.call(agent), page_size=1, page_token=change_token(page.next_page_token))
    assert [(v.field, v.description) for v in refused.value.violations] == [
        ("pageToken", "is not a token of this server")
    ]


async def test_everybody_lists_their_own(world: World) -> None:
    agent, other = await world.add_agent(), await world.add_agent()
    alices = [(await soon(send_message(world.call(agent), request()))).record.id for _ in range(3)]
    bobs = (await soon(send_message(world.call(agent, "bob"), request()))).record.id
    elsewhere = (await soon(send_message(world.call(other), request()))).record.id
    for call, expected in (
        (world.call(agent), alices),
        (world.call(agent, "bob"), [bobs]),
        (world.call(other), [elsewhere]),
        (world.call(other, "bob"), []),
    ):
        page = await listed(call)
        assert sorted(r.id for r in page.records) == sorted(expected)
        assert page.total_size == len(expected)


@pytest.mark.parametrize("shared", [True, False])
async def test_anonymous_callers_list_only_a_shared_history(world: World, shared: bool) -> None:
    agent = await world.add_agent(open=True, shared_history=shared)
    call = Call(world.hosts[0], agent, Caller(ANONYMOUS), "JSONRPC/1.0")
    answers = [await soon(send_message(call, request())) for _ in range(3)]
    page = await listed(call, page_size=2)
    assert (len(page.records), page.total_size) == ((2, 3) if shared else (0, 0))
    assert bool(page.next_page_token) is shared
    task = await soon(get_task(call, GetTaskRequest(id=answers[0].record.id)))
    assert task.id == answers[0].record.id, "who knows the id reaches the task"
    assert (await listed(world.call(agent))).total_size == 0
    with pytest.raises(TaskNotFoundError):
        await soon(get_task(world.call(agent), GetTaskRequest(id=answers[0].record.id)))


async def test_what_was_answered_with_a_message_is_no_task(world: World) -> None:
    agent = await world.add_agent(executor="direct")
    call = world.call(agent)
    answer = await soon(send_message(call, request()))
    assert (await listed(call)).total_size == 0
    assert (await listed(call)).records == []
    assert (await listed(call, context_id=answer.record.context_id)).total_size == 0
    with pytest.raises(TaskNotFoundError):
        await soon(get_task(call, GetTaskRequest(id=answer.record.id)))


async def test_history_and_artifacts_are_listed_when_asked_for(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING, say("on it", "a-1"))
        await updates.artifact(chunk("x", "x"))
        await updates.artifact(chunk("y", "x"), append=True)
        await updates.status(TaskState.COMPLETED)

    agent = await world.add_agent(act)
    call = world.call(agent)
    for n in range(3):
        await soon(send_message(call, request(message_id=f"m-{n}")))

    async def shapes(**fields: Any) -> list[tuple[list[str] | None, int | None]]:
        tasks = json.loads((await listed(call, **fields)).payload())["tasks"]
        return [
            (
                [m["messageId"] for m in t["history"]] if "history" in t else None,
                len(t["artifacts"][0]["parts"]) if "artifacts" in t else None,
            )
            for t in tasks
        ]

    assert await shapes() == [(None, None)] * 3
    assert await shapes(history_length=0) == [(None, None)] * 3
    assert await shapes(history_length=1) == [(["a-1"], None)] * 3
    assert await shapes(include_artifacts=True) == [(None, 2)] * 3
    assert await shapes(history_length=9, include_artifacts=True) == [([f"m-{n}", "a-1"], 2) for n in (2, 1, 0)]


async def test_the_total_is_exact_while_tasks_come_and_go(world: World) -> None:
    other = await world.start_host()
    agent = await world.add_agent()
    await asyncio.gather(
        *(soon(send_message(world.call(agent, host=h), request())) for h in (world.hosts[0], other) for _ in range(40))
    )
    assert (await listed(world.call(agent))).total_size == 80
    assert (await listed(world.call(agent), status=TaskState.COMPLETED)).total_size == 80
    await world.query("DELETE FROM tasks_app_task WHERE id IN (SELECT id FROM tasks_app_task ORDER BY id LIMIT 30)")
    assert (await listed(world.call(agent))).total_size == 50
    some = "SELECT id FROM tasks_app_task ORDER BY id LIMIT 7"
    await world.query(f"UPDATE tasks_app_task SET state = 4 WHERE id IN ({some})")
    assert (await listed(world.call(agent), status=TaskState.FAILED)).total_size == 7
    await check_counters(world)
