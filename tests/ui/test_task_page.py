"""The page of one task: states, conversation, artifacts, events and raw JSON."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from agents.models import Agent
from protocol.codec import encode
from protocol.model import Part, Role
from protocol.states import TaskState
from tasks_app.models import Event
from tasks_app.pages import story
from tests.ui.support import (
    Page,
    add_artifact,
    add_message,
    add_reply,
    add_status,
    data_part,
    make_task,
    text_message,
)


def test_an_unknown_task_is_not_found(staff: Client, echo: Agent) -> None:
    for path in ("nope/", "nope/raw", "nope/task.json", "nope/events/1", "nope/files/m1/0"):
        assert staff.get(f"/tasks/{path}").status_code == 404


def test_the_head_says_whose_task_it_is(staff: Client, echo: Agent) -> None:
    task = make_task(echo, "Where is it?", TaskState.WORKING, owner="shop & co", context_id="c/1?x=y", attempt=2)
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.texts("facts") == [
        "State Working Agent Echo Owner shop & co Context c/1?x=y Created 2026-03-01 12:00:00.000 "
        f"Last change 2026-03-01 Binding JSONRPC/1.0 Execution {echo.get_execution_display()}, attempt 2"
    ]
    assert page.texts("task-title") == [f"Where is it? {task.id}"]
    links = {link["href"] for link in page.find("a")}
    assert {"/catalog/#agent-echo", "/tasks/?owner=shop%20%26%20co", "/tasks/?context=c%2F1%3Fx%3Dy"} <= links
    assert {b["data-copy"] for b in page.find("button") if "data-copy" in b} == {task.id, "c/1?x=y"}


def test_the_timeline_measures_each_state(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_status(task, TaskState.WORKING, 0.25)
    add_status(task, TaskState.WORKING, 1, text_message("half way"))
    add_status(task, TaskState.INPUT_REQUIRED, 3.75, text_message("Which one?"))
    add_status(task, TaskState.WORKING, 95)
    add_status(task, TaskState.COMPLETED, 7295)
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.text("timeline") == (
        "Submitted 250 ms 12:00:00.000 "
        "Working 3.5 s 12:00:00.250, 2 updates "
        "Input required 1 min 31 s 12:00:03.750 "
        "Working 2 h 0 min 12:01:35.000 "
        "Completed 14:01:35.000"
    )


def test_a_task_that_waits_says_so_and_stays_live(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_status(task, TaskState.INPUT_REQUIRED, 1, text_message("Which one?"))
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.text("timeline").endswith("Input required 12:00:01.000, waiting for the caller")
    assert page.find("section", id="task-head")[0]["data-watch"] == task.id
    add_status(task, TaskState.REJECTED, 2)
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.find("section", id="task-head")[0]["data-watch"] == ""


def test_the_conversation_shows_every_message_once_in_order(staff: Client, echo: Agent) -> None:
    task = make_task(echo, "Book a table", owner="shop")
    question = text_message("For how many?", message_id="q-1")
    add_status(task, TaskState.INPUT_REQUIRED, 1, question)
    add_message(task, question, 2, after=5)
    add_message(task, text_message("Two", Role.USER), 3, after=5.5)
    add_status(task, TaskState.COMPLETED, 6, text_message("Booked."))
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.texts("bubble") == [
        "shop 12:00:00.000 Book a table",
        "Echo 12:00:01.000 Input required For how many?",
        "shop 12:00:05.500 Two",
        "Echo 12:00:06.000 Completed Booked.",
    ]


def test_an_exchange_that_was_answered_with_a_message(staff: Client, echo: Agent) -> None:
    task = make_task(echo, "Are you there?", TaskState.UNSPECIFIED)
    add_reply(task, text_message("Yes."))
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.texts("bubble") == ["anonymous 12:00:00.000 Are you there?", "Echo 12:00:01.000 Yes."]
    assert page.text("log") == "1 12:00:01.000 message “Yes.” Loading…"
    assert page.find("details", id="raw") == []
    assert staff.get(f"/tasks/{task.id}/task.json").status_code == 404


def test_artifacts_are_put_together_from_their_chunks(staff: Client, echo: Agent) -> None:
    task = make_task(echo, state=TaskState.WORKING)
    add_artifact(task, "a", [Part(text="gone")], name="Poem")
    add_artifact(task, "a", [Part(text="Roses are ")], name="Poem")
    add_artifact(task, "b", [Part(text="other")])
    add_artifact(task, "a", [Part(text="red,\n")], append=True)
    add_artifact(task, "a", [Part(text="violets"), Part(text="(the end)")], append=True, last_chunk=True)
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.texts("artifact") == [
        "Poem a 3 chunks replaced 1× Roses are red, violets (the end)",
        "b may grow other",
    ]
    assert page.text("size-of-artifacts") == "2"
    assert [a["data-v"] for a in page.find("article") if "artifact" in a["class"]] == ["5", "3"]


def test_appending_to_an_unknown_artifact_creates_it(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_artifact(task, "late", [Part(text="here")], append=True)
    assert Page(staff.get(f"/tasks/{task.id}/")).texts("artifact") == ["late here"]


def test_artifacts_too_large_for_a_page(staff: Client, echo: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "MOST_ARTIFACT_CHARACTERS", 300)
    task = make_task(echo)
    add_artifact(task, "small", [Part(text="x" * 100)])
    add_artifact(task, "large", [Part(text="y" * 300)])
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.texts("artifact") == ["small " + "x" * 100]
    assert page.text("artifacts-cut").startswith("The artifacts are larger than a page can show.")


def test_the_log_is_read_in_pages(staff: Client, echo: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "LOG_PAGE", 3)
    task = make_task(echo)
    for second in range(1, 8):
        add_status(task, TaskState.WORKING, second, text_message(f"part {second}"))

    def seqs(page: Page) -> list[str]:
        return [row["data-v"] for row in page.find("tr") if row.get("id", "").startswith("event-")]

    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert (seqs(page), page.text("log-size")) == (["5", "6", "7"], "7 events")
    assert [a["href"] for a in page.find("a") if "#log" in a["href"]] == ["?log=5#log-title"]
    page = Page(staff.get(f"/tasks/{task.id}/?log=5"))
    assert seqs(page) == ["2", "3", "4"]
    page = Page(staff.get(f"/tasks/{task.id}/?log=2"))
    assert seqs(page) == ["1"]
    assert [a["href"] for a in page.find("a") if "#log" in a["href"]] == ["?#log-title"]
    for text in ("x", "-1", "²", "9" * 30):
        assert seqs(Page(staff.get(f"/tasks/{task.id}/", {"log": text}))) == ["5", "6", "7"]


def test_log_lines_sum_up_their_events(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_status(task, TaskState.WORKING, 1)
    add_artifact(task, "r", [Part(text="word " * 40), Part(raw="AAAA", media_type="image/png")], 2, name="Report")
    add_artifact(task, "r", [data_part('{"n":1}'), Part(url="https://e.test/f")], 3, append=True, last_chunk=True)
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.text("log") == (
        "1 12:00:01.000 Working No message Loading… "
        f"2 12:00:02.000 artifact set Report: “{('word ' * 40)[:80]}…”, image/png, 3 bytes Loading… "
        "3 12:00:03.000 artifact append to r, last chunk: data, 7 bytes of JSON, url https://e.test/f Loading…"
    )


def test_an_event_opens_as_the_stream_sent_it(staff: Client, echo: Agent) -> None:
    task = make_task(echo, context_id="c-1")
    add_status(task, TaskState.WORKING, 1)
    Event.objects.filter(task=task).update(metadata='{"cost":1.50}')
    (code,) = Page(staff.get(f"/tasks/{task.id}/events/1")).texts("code")
    assert json.loads(code) == {
        "statusUpdate": {
            "taskId": task.id,
            "contextId": "c-1",
            "status": {"state": "TASK_STATE_WORKING"},
            "metadata": {"cost": 1.5},
        }
    }
    assert "1.50" in code
    assert staff.get(f"/tasks/{task.id}/events/2").status_code == 404


@pytest.mark.spec("3.1.3")
def test_the_raw_json_is_what_get_task_gives(staff: Client, echo: Agent) -> None:
    task = make_task(echo, "hi", context_id="c-1", metadata='{"n":1.0}')
    task_id = task.id
    add_artifact(task, "a", [data_part("[1,1.0,1e2]")])
    add_artifact(task, "a", [Part(text="more")], append=True)
    add_status(task, TaskState.COMPLETED, 2)
    response = staff.get(f"/tasks/{task_id}/task.json")
    assert response["Content-Type"] == "application/json"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert b'"data":[1,1.0,1e2]' in response.content
    assert b'"metadata":{"n":1.0}' in response.content
    first = task.messages.get()
    assert json.loads(response.content) == {
        "id": task_id,
        "contextId": "c-1",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": [{"data": [1, 1.0, 100.0]}, {"text": "more"}]}],
        "history": [json.loads(first.body)],
        "metadata": {"n": 1.0},
    }
    raw = Page(staff.get(f"/tasks/{task_id}/raw"))
    assert json.loads(raw.texts("code")[0]) == json.loads(response.content)
    assert raw.find("button")[0]["data-copy-url"] == f"/tasks/{task_id}/task.json"


def test_raw_json_too_large_to_show_can_be_downloaded(staff: Client, echo: Agent) -> None:
    task = make_task(echo, "x" * (1024 * 1024))
    raw = Page(staff.get(f"/tasks/{task.id}/raw"))
    assert raw.texts("code") == []
    assert "Too large to show. Download it." in raw.html
    assert len(raw.html) < 2000


def test_a_status_message_that_is_large_does_not_break_the_page(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_status(task, TaskState.FAILED, 1, text_message("z" * 300_000))
    html = staff.get(f"/tasks/{task.id}/").content.decode()
    assert html.count("z" * 1000) == 200
    assert "100000 more characters" in html
    assert encode(text_message("z"))  # the page did not change what is stored
    assert len(Event.objects.get(task=task).body) > 300_000
