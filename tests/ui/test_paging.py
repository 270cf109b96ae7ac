"""Pages of the list: keyset cursors that lose and repeat nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from protocol.states import TaskState
from tasks_app.models import Task
from tasks_app.pages import listing
from tasks_app.pages.filters import Criteria
from tasks_app.pages.listing import Cursor, read_page
from tests.ui.support import START, Page, make_agent, make_task


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 4)


def _tasks(agent: Agent, count: int, **values: object) -> list[str]:
    """Ids of tasks, newest change first; groups of three changed at the same moment."""
    tasks = [make_task(agent, at=START + timedelta(seconds=n // 3), **values) for n in range(count)]
    return [t.id for t in sorted(tasks, key=lambda t: (t.status_at, t.id), reverse=True)]


def _walk(client: Client, page: Page, rel: str) -> list[Page]:
    """The pages that follow one another by the links of a kind, from `page` on."""
    pages = [page]
    while links := pages[-1].find("a", rel=rel):
        pages.append(Page(client.get(f"/tasks/{links[0]['href']}")))
        assert len(pages) < 20
    return pages


def _ids(pages: list[Page]) -> list[list[str]]:
    return [page.task_ids for page in pages]


def test_older_and_newer_lead_through_the_list_and_back(staff: Client, echo: Agent) -> None:
    ids = _tasks(echo, 10)
    older = _walk(staff, Page(staff.get("/tasks/")), "next")
    assert _ids(older) == [ids[0:4], ids[4:8], ids[8:10]]
    newer = _walk(staff, older[-1], "prev")
    assert _ids(newer) == [ids[8:10], ids[4:8], ids[0:4]]


def test_a_whole_last_page_has_no_older_one(staff: Client, echo: Agent) -> None:
    ids = _tasks(echo, 8)
    assert _ids(_walk(staff, Page(staff.get("/tasks/")), "next")) == [ids[0:4], ids[4:8]]


def test_paging_keeps_the_filters(staff: Client, echo: Agent) -> None:
    failed = _tasks(echo, 6, state=TaskState.FAILED)
    _tasks(echo, 6)
    page = Page(staff.get("/tasks/?state=failed&owner=&agent=echo"))
    (older,) = (link["href"] for link in page.find("a", rel="next"))
    assert older.startswith("?state=failed&agent=echo&before=")
    assert Page(staff.get(f"/tasks/{older}")).task_ids == failed[4:]


def test_a_task_that_changes_leaves_no_gap(staff: Client, echo: Agent) -> None:
    ids = _tasks(echo, 8)
    (older,) = (link["href"] for link in Page(staff.get("/tasks/")).find("a", rel="next"))
    Task.objects.filter(id=ids[3]).update(status_at=START + timedelta(hours=1))
    assert Page(staff.get(f"/tasks/{older}")).task_ids == ids[4:8]


def test_several_owners_are_merged_in_order(echo: Agent) -> None:
    expected = []
    for number in range(12):
        task = make_task(echo, owner=f"owner-{number % 5}", at=START + timedelta(seconds=number))
        make_task(make_agent("other"), owner="owner-0", at=START + timedelta(seconds=number))
        expected.insert(0, task.id)
    criteria = Criteria(agent_id=echo.pk)
    found, cursor = [], None
    while True:
        page = read_page(criteria, before=cursor)
        found += [row.task.id for row in page.rows]
        if page.older is None:
            break
        cursor = page.older
    assert found == expected


def test_more_owners_than_can_be_merged(echo: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_MOST_GROUPS", 2)
    wanted = [make_task(echo, owner=f"owner-{n}", state=TaskState.FAILED) for n in range(4)]
    make_task(echo, owner="owner-9")
    make_task(make_agent("other"), state=TaskState.FAILED)
    page = read_page(Criteria(agent_id=echo.pk, states=frozenset({TaskState.FAILED.number})))
    assert {row.task.id for row in page.rows} == {task.id for task in wanted}


def test_each_part_of_a_merged_list_is_a_range_of_an_index(echo: Agent) -> None:
    failed = TaskState.FAILED.number
    Task.objects.bulk_create(
        Task(
            id=f"task-{n}",
            agent=echo,
            owner=f"owner-{n % 3}",
            state=failed if n % 2 else 3,
            status_at=START,
            created_at=START,
        )
        for n in range(3000)
    )
    with CaptureQueriesContext(connection) as queries:
        read_page(Criteria(agent_id=echo.pk, states=frozenset({failed})), before=Cursor(START, "task-5"))
    (merged,) = (q["sql"] for q in queries if "UNION ALL" in q["sql"])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tasks_app_task")
        cursor.execute(f"EXPLAIN {merged}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert plan.count("using task_list_state") == 3, plan
    assert "Merge Append" in plan, plan
    assert "->  Sort" not in plan, plan


@pytest.mark.parametrize("text", ["", "x", "1_", "_a", "1", "1_a_b", "-1_a", "1_" + "a" * 37, "9" * 18 + "_a", "１_a"])
def test_what_is_no_cursor_shows_the_newest_page(text: str, staff: Client, echo: Agent) -> None:
    assert Cursor.parse(text) is None
    task = make_task(echo)
    for name in ("before", "after"):
        assert Page(staff.get("/tasks/", {name: text})).task_ids == [task.id]


def test_a_cursor_survives_printing(echo: Agent) -> None:
    cursor = Cursor(START + timedelta(microseconds=123456), "0199c8f0-0000-7000-8000-000000000001")
    assert str(cursor) == "1772366400123456_0199c8f0-0000-7000-8000-000000000001"
    assert Cursor.parse(str(cursor)) == cursor
