"""The list of tasks: what it shows and what its filters find."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Agent
from protocol.model import Part
from protocol.states import TaskState
from tasks_app.pages import listing
from tests.ui.support import START, Page, make_agent, make_task


def test_a_row_says_who_what_and_when(staff: Client, echo: Agent) -> None:
    task = make_task(
        echo, "\n  Where is my order?\nIt is late.", TaskState.INPUT_REQUIRED, owner="shop", context_id="basket-1"
    )
    page = Page(staff.get("/tasks/"))
    row = page.text(f"task-{task.id}")
    assert row.startswith(f"Input required Where is my order? {task.id} echo shop basket-1 2026-03-01")
    assert "It is late" not in page.html
    links = {link["href"] for link in page.find("a")}
    assert {f"/tasks/{task.id}/", "/catalog/#agent-echo", "/tasks/?context=basket-1"} <= links
    assert [t["title"] for t in page.find("time")] == ["2026-03-01 12:00:00.000 UTC"] * 2


def test_relative_times(staff: Client, echo: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    for age, shown in [
        (timedelta(seconds=4), "just now"),
        (timedelta(seconds=20), "20 s ago"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(hours=5), "5 h ago"),
        (timedelta(days=4), "4 d ago"),
    ]:
        task = make_task(echo, at=now - age)
        assert Page(staff.get("/tasks/")).text(f"task-{task.id}").endswith(f"{shown} {shown}")


def test_every_state_has_a_label_of_its_own(staff: Client, echo: Agent) -> None:
    for state in TaskState:
        make_task(echo, state=state)
    badges = Page(staff.get("/tasks/")).texts("badge")
    assert sorted(badges) == [
        *("Auth required", "Canceled", "Completed", "Direct reply", "Failed", "Input required", "Rejected"),
        *("Submitted", "Working"),
    ]


def test_a_message_without_text(staff: Client, echo: Agent) -> None:
    task = make_task(echo, [Part(raw="AAA=", media_type="image/png")])
    assert Page(staff.get("/tasks/")).text(f"task-{task.id}").startswith(f"Completed No text {task.id}")


def test_the_newest_change_is_first(staff: Client, echo: Agent) -> None:
    old, new, middle = (make_task(echo, at=START + timedelta(minutes=m)) for m in (0, 9, 5))
    assert Page(staff.get("/tasks/")).task_ids == [new.id, middle.id, old.id]


def test_filters_narrow_the_list(staff: Client, echo: Agent) -> None:
    other = make_agent("other")
    failed = make_task(echo, "disk full", TaskState.FAILED, owner="shop", context_id="c-1")
    working = make_task(echo, "counting", TaskState.WORKING, owner="bank", context_id="c-2")
    done = make_task(other, "counted 100 % of it", TaskState.COMPLETED, owner="shop", context_id="c-1")
    everything = {failed.id, working.id, done.id}

    def found(query: str) -> set[str]:
        page = Page(staff.get(f"/tasks/?{query}"))
        return set(page.task_ids)

    assert found("") == everything
    assert found("agent=echo") == {failed.id, working.id}
    assert found("agent=other") == {done.id}
    assert found("state=failed&state=completed") == {failed.id, done.id}
    assert found("state=rejected") == set()
    assert found("owner=shop") == {failed.id, done.id}
    assert found("owner=sho") == set()
    assert found("context=c-1") == {failed.id, done.id}
    assert found("context=c-1&agent=echo") == {failed.id}
    assert found("text=COUNT") == {working.id, done.id}
    assert found("text=0+%25+of") == {done.id}
    assert found("text=_ount") == set()
    assert found("text=count&agent=echo") == {working.id}
    assert found(f"text={working.id}") == {working.id}
    assert found(f"text={working.id.upper()}&agent=other") == set()
    assert found("agent=&state=&owner=&context=&text=&within=") == everything


def test_filters_by_time(staff: Client, echo: Agent) -> None:
    now = timezone.now()
    old, recent, last = (make_task(echo, at=now - timedelta(hours=h)) for h in (50, 3, 0.5))

    def found(query: str) -> set[str]:
        return set(Page(staff.get(f"/tasks/?{query}")).task_ids)

    def minute(hours: float) -> str:
        return (now - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")

    assert found("within=hour") == {last.id}
    assert found("within=day") == {recent.id, last.id}
    assert found("within=week") == {old.id, recent.id, last.id}
    assert found(f"since={minute(4)}") == {recent.id, last.id}
    assert found(f"until={minute(2)}") == {old.id, recent.id}
    assert found(f"since={minute(4)}&until={minute(2)}") == {recent.id}
    assert found(f"within=hour&since={minute(4)}") == {last.id}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("agent=nobody", "Agent: There is no such agent."),
        ("state=sleeping", "State: Select a valid choice. sleeping is not one of the available choices."),
        ("since=yesterday", "Since: Enter a valid date/time."),
        ("since=2026-03-02T00:00&until=2026-03-01T00:00", "Until: This is before the start of the range."),
        ("text=%00", "Text: Null characters are not allowed."),
        ("owner=" + "x" * 121, "Owner: Ensure this value has at most 120 characters (it has 121)."),
    ],
)
def test_filters_that_make_no_sense_say_so(query: str, said: str, staff: Client, echo: Agent) -> None:
    make_task(echo)
    page = Page(staff.get(f"/tasks/?{query}"))
    assert page.text("filter-errors") == said
    assert page.task_ids == []
    assert page.text("total") == ""


def test_filters_stay_in_the_form(staff: Client, echo: Agent) -> None:
    page = Page(
        staff.get("/tasks/?agent=echo&state=failed&owner=a%22b&text=x&context=c&within=day&since=2026-03-01T00:00")
    )
    values = {v["name"]: v["value"] for v in page.find("input") if v.get("type") != "checkbox" and "value" in v}
    assert values["owner"] == 'a"b'
    assert (values["text"], values["context"], values["since"]) == ("x", "c", "2026-03-01T00:00")
    assert [v["value"] for v in page.find("input", type="checkbox") if "checked" in v] == ["failed"]
    assert [v["value"] for v in page.find("option") if "selected" in v] == ["echo", "day"]
    assert page.text("filters-set") == "(7)"


def test_totals_come_from_the_counters(staff: Client, echo: Agent) -> None:
    for number in range(3):
        make_task(echo, owner=f"owner-{number}")
    make_task(make_agent("other"), state=TaskState.FAILED)
    with CaptureQueriesContext(connection) as queries:
        page = Page(staff.get("/tasks/"))
    assert page.text("total") == "4 tasks"
    assert (page.text("count-completed"), page.text("count-failed"), page.text("count-working")) == ("3", "1", "0")
    assert [q["sql"] for q in queries if "COUNT(" in q["sql"].upper() or "OFFSET" in q["sql"].upper()] == []
    page = Page(staff.get("/tasks/?agent=echo&state=completed"))
    assert (page.text("total"), page.text("count-failed")) == ("3 matching", "0")
    assert Page(staff.get("/tasks/?text=hello")).text("total") == ""
    assert [o["value"] for o in page.find("option") if o["value"].startswith("owner-")] == [
        "owner-0",
        "owner-1",
        "owner-2",
    ]


def test_the_cost_of_a_page_does_not_grow_with_its_rows(staff: Client, echo: Agent) -> None:
    make_task(echo)
    with CaptureQueriesContext(connection) as one:
        staff.get("/tasks/?agent=echo")
    for _ in range(30):
        make_task(echo)
    with CaptureQueriesContext(connection) as many:
        assert len(Page(staff.get("/tasks/?agent=echo")).task_ids) == 31
    assert len(many) == len(one)


def test_a_slow_search_is_stopped(staff: Client, echo: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_SEARCH_MILLISECONDS", 1)
    for _ in range(20):
        make_task(echo, "needle in a haystack " * 20_000)
    page = Page(staff.get("/tasks/?text=no+such+straw"))
    assert page.text("no-rows").startswith("This search takes too long")
    assert Page(staff.get("/tasks/")).text("total") == "20 tasks"


def test_a_newcomer_is_told_what_to_try(staff: Client, db: None) -> None:
    page = Page(staff.get("/tasks/"))
    assert page.text("no-rows").startswith("No tasks, and no agents yet")
    assert page.find("a", href="/admin/agents/agent/add/")
    make_agent("closed", open=False)
    assert '"Authorization: Bearer $A2A_KEY"' in Page(staff.get("/tasks/")).text("first-curl")
    make_agent("open")
    assert Page(staff.get("/tasks/")).text("first-curl").startswith("curl http://testserver/agents/open ")
    assert Page(staff.get("/tasks/?owner=x")).text("no-rows").startswith("No task matches")
