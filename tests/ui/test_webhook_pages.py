"""The list of webhooks, the page of one with its ledger, and what its buttons do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from agents.models import Agent
from protocol.states import TaskState
from tasks_app.models import AuditEntry, Delivery, PushConfig, Task
from tasks_app.pages import webhook_list, webhook_page
from tests.ui.support import START, Page, add_status, make_agent, make_task
from tests.ui.test_answering import client_of
from tests.ui.test_webhooks import add_webhook

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture
def operator(db: None) -> Client:
    """A browser of somebody on the staff who may do something to webhooks, and nothing else."""
    return client_of("ada", "operate_webhook")


@pytest.fixture
def task(echo: Agent) -> Task:
    """A task with two events."""
    task = make_task(echo)
    add_status(task, TaskState.WORKING, 1)
    add_status(task, TaskState.COMPLETED, 2)
    return task


def add_line(task: Task, config_id: str = "c", seq: int = 1, **values: Any) -> Delivery:
    """A line of the ledger: an attempt that the receiver took, unless `values` say otherwise."""
    filled = {"attempt": 1, "at": START, "duration_ms": 12, "status": 200, "error": "", "response": ""} | values
    return Delivery.objects.create(task=task, config_id=config_id, seq=seq, **filled)


def hooks(page: Page) -> list[str]:
    """The texts of the rows of the list."""
    return list(page.texts("cell-hook"))


def act(client: Client, task: Task, name: str, **fields: Any) -> Page:
    """Press a button; the page that comes then."""
    response = client.post(f"/webhooks/{task.id}/act", {"act": name, "id": "c", **fields}, follow=True)
    assert response.redirect_chain == [(f"/webhooks/{task.id}/?id=c", 302)]
    return Page(response)


def test_the_list_shows_the_health_of_each(staff: Client, task: Task) -> None:
    stopped = {"disabled_reason": "It said 410.", "disabled_at": START}
    for name, values in {
        "well": {},
        "waiting": {"cursor": 1},
        "failing": {"cursor": 0, "failing_since": timezone.now() - timedelta(hours=3), "attempts": 7},
        "paused": {"paused_at": START, "failing_since": START},
        "disabled": {**stopped, "paused_at": START},
    }.items():
        add_webhook(task, name, url=f"https://{name}.test/", **values)
    add_line(task, "failing", status=503, error="HTTP 503")
    add_line(task, "well", status=None, error="no reply within 20 s")
    page = Page(staff.get("/webhooks/"))
    assert hooks(page) == [
        f"https://{name}.test/ {name}" for name in ("well", "waiting", "paused", "failing", "disabled")
    ]
    assert page.texts("badge") == ["Up to date", "Waiting", "Paused", "Failing", "Disabled"]
    assert page.texts("cell-number") == [f"{n} waiting" for n in (0, 1, 0, 2, 0)]
    assert "HTTP 503" in page.html
    assert "no reply within 20 s" in page.html
    assert "7 attempts" in page.html
    assert page.texts("chip") == ["Failing 1", "Disabled 1", "Paused 1", "Waiting"]
    for name in ("failing", "disabled", "paused", "waiting"):
        assert hooks(Page(staff.get(f"/webhooks/?health={name}"))) == [f"https://{name}.test/ {name}"]
    for secret in ("tok-en", "cred-en", "gAAAA"):
        assert secret not in page.html


def test_the_list_is_filtered_by_text_and_agent(staff: Client, task: Task) -> None:
    other = make_task(make_agent("other"))
    add_webhook(task, "a", url="https://Alpha.test/x")
    add_webhook(other, "b", url="https://beta.test/y")
    for query, expected in {
        "text=alpha": ["https://Alpha.test/x a"],
        "text=b": ["https://beta.test/y b"],
        f"text={other.id.upper()}": ["https://beta.test/y b"],
        "agent=echo": ["https://Alpha.test/x a"],
        "agent=other&text=alpha": [],
    }.items():
        assert hooks(Page(staff.get(f"/webhooks/?{query}"))) == expected, query
    assert "There is no such agent." in staff.get("/webhooks/?agent=none").content.decode()
    assert "No webhook matches" in staff.get("/webhooks/?text=nothing").content.decode()


def test_the_list_comes_in_pages(staff: Client, echo: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_list, "PAGE_SIZE", 2)
    for _ in range(2):
        task = make_task(echo)
        for name in ("a", "b"):
            add_webhook(task, name)
    add_webhook(make_task(echo), "new id")
    path, seen = "/webhooks/", []
    while path:
        page = Page(staff.get(path))
        seen += [text.rpartition("/a ")[2] for text in hooks(page)]
        (link,) = page.find("a", rel="next") or [{"href": ""}]
        path = f"/webhooks/{link['href']}" if link["href"] else ""
    assert seen == ["new id", "b", "a", "b", "a"]


def test_an_empty_list_says_so(staff: Client) -> None:
    assert "No webhooks yet" in staff.get("/webhooks/").content.decode()


def test_the_page_of_a_webhook_has_its_ledger(operator: Client, task: Task) -> None:
    add_webhook(task, "c", cursor=1, failing_since=timezone.now(), attempts=2, last_error="HTTP 500", due_at=START)
    add_line(task, response=HOSTILE)
    add_line(task, seq=2, status=500, error="HTTP 500", next_at=START + timedelta(seconds=3), attempt=2)
    add_line(task, seq=1, kind=Delivery.Kind.AGAIN)
    add_line(task, seq=0, kind=Delivery.Kind.TEST, status=None, error="the connection failed")
    add_line(task, "another", response="of another")
    page = Page(operator.get(f"/webhooks/{task.id}/?id=c"))
    assert page.texts("answer") == ["the connection failed", "HTTP 200", "HTTP 500", "HTTP 200"]
    assert page.texts("tag") == ["Test", "Sent again"]
    assert "<script>alert" not in page.html
    assert "of another" not in page.html
    assert "1 of 2" in page.html
    assert [f["value"] for f in page.find("input", name="act")] == [
        *("pause", "retry", "test", "redeliver-from", "redeliver", "redeliver", "redeliver")
    ]
    for secret in ("tok-en", "cred-en", "gAAAA"):
        assert secret not in page.html


def test_the_ledger_comes_in_pages(staff: Client, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_page, "LEDGER_PAGE", 2)
    add_webhook(task, "a b/ы&c")
    for number in range(5):
        add_line(task, "a b/ы&c", status=200 + number)
    path, seen = f"/webhooks/{task.id}/?id=a+b%2F%D1%8B%26c", []
    while path:
        page = Page(staff.get(path))
        seen += page.texts("answer")
        (link,) = page.find("a", rel="next") or [{"href": ""}]
        path = link["href"]
    assert seen == [f"HTTP {200 + number}" for number in reversed(range(5))]


def test_a_deleted_webhook_keeps_its_ledger(operator: Client, task: Task) -> None:
    add_line(task, "gone")
    page = Page(operator.get(f"/webhooks/{task.id}/?id=gone"))
    assert page.texts("answer") == ["HTTP 200"]
    assert page.find("input", name="act") == []
    assert operator.get(f"/webhooks/{task.id}/?id=never").status_code == 404
    assert operator.get("/webhooks/no-task/?id=c").status_code == 404
    assert operator.get(f"/webhooks/{task.id}/?id=%00").status_code == 404


@pytest.mark.parametrize(
    ("name", "before", "after", "fields"),
    [
        ("pause", {}, {"paused_at__isnull": False, "due_at": None}, {}),
        ("resume", {"paused_at": START, "cursor": 1}, {"paused_at": None, "due_at__isnull": False}, {}),
        (
            "enable",
            {"cursor": 1, "disabled_at": START, "disabled_reason": "x", "failing_since": START, "attempts": 9},
            {"disabled_at": None, "disabled_reason": "", "attempts": 0, "failing_since": None, "due_at__isnull": False},
            {},
        ),
        (
            "retry",
            {"cursor": 1, "due_at": START + timedelta(days=9999)},
            {"due_at__lt": START + timedelta(days=9000)},
            {},
        ),
        ("test", {"paused_at": START}, {"resend": [0], "due_at__isnull": False, "paused_at": START}, {}),
        ("redeliver", {}, {"resend": [2], "due_at__isnull": False, "cursor": 2}, {"seq": "2"}),
        ("redeliver-from", {}, {"resend": [], "due_at__isnull": False, "cursor": 1, "claim": 1}, {"seq": "2"}),
    ],
)
def test_each_button_does_its_work_and_leaves_a_line(
    operator: Client, task: Task, name: str, before: dict[str, Any], after: dict[str, Any], fields: dict[str, str]
) -> None:
    add_webhook(task, "c", **before)
    add_webhook(task, "other")
    other = PushConfig.objects.filter(config_id="other").values().get()
    page = act(operator, task, name, **fields)
    assert page.texts("note-bad") == (["Disabled 2026-03-01. x"] if "disabled_at" in after and name != "enable" else [])
    assert PushConfig.objects.filter(task=task, config_id="c", **after).count() == 1
    (line,) = AuditEntry.objects.all()
    assert (line.actor, line.agent, line.task_id) == ("ada", "echo", task.id)
    assert line.action == f"webhook.{name.partition('-')[0]}"
    assert line.detail.startswith("Webhook c: ")
    assert PushConfig.objects.filter(config_id="other").values().get() == other


@pytest.mark.parametrize(("name", "before"), [("test", {}), ("enable", {"cursor": 1, "disabled_reason": "x"})])
def test_what_is_due_at_once_is_due_by_the_clock_of_the_database(
    operator: Client, task: Task, monkeypatch: pytest.MonkeyPatch, name: str, before: dict[str, Any]
) -> None:
    add_webhook(task, "c", **before)
    ahead = timezone.now() + timedelta(minutes=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: ahead)
    act(operator, task, name)
    assert PushConfig.objects.filter(config_id="c", due_at__lte=Now()).count() == 1


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("resume", {}, "It is not paused."),
        ("enable", {}, "It is not disabled."),
        ("retry", {}, "Nothing is to be tried again."),
        ("redeliver", {"seq": "3"}, "The task has no event 3."),
        ("redeliver", {"seq": "x"}, "The task has no event 0."),
        ("redeliver-from", {"seq": "0"}, "The task has no event 0."),
        ("redeliver-from", {}, "The task has no event 0."),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    operator: Client, task: Task, name: str, fields: dict[str, str], said: str
) -> None:
    add_webhook(task, "c")
    before = PushConfig.objects.values().get()
    assert act(operator, task, name, **fields).texts("note-bad") == [said]
    assert PushConfig.objects.values().get() == before
    assert AuditEntry.objects.count() == 0


def test_nothing_is_done_without_a_name_a_right_or_a_token(operator: Client, task: Task) -> None:
    add_webhook(task, "c")
    path = f"/webhooks/{task.id}/act"
    assert operator.post(path, {"act": "delete", "id": "c"}).status_code == 404
    assert operator.get(path).status_code == 405
    assert Client().post(path, {"act": "pause", "id": "c"})["Location"] == f"/admin/login/?next={path}"
    guest = Client()
    guest.force_login(User.objects.create(username="guest"))
    assert guest.post(path, {"act": "pause", "id": "c"}).status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="ada"))
    assert strict.post(path, {"act": "pause", "id": "c"}).status_code == 403
    assert PushConfig.objects.filter(paused_at__isnull=False).count() == AuditEntry.objects.count() == 0


def test_without_the_permission_there_is_nothing_to_press(task: Task) -> None:
    """Another permission does not help."""
    add_webhook(task, "c", cursor=1, due_at=START, disabled_at=START, disabled_reason="x")
    add_webhook(task, "paused", cursor=1, paused_at=START)
    for name in ("c", "paused"):
        add_line(task, name)
    before = list(PushConfig.objects.order_by("config_id").values())
    helper = client_of("bob", "answer_task")
    for name in ("c", "paused"):
        page = Page(helper.get(f"/webhooks/{task.id}/?id={name}"))
        assert page.texts("answer") == ["HTTP 200"]
        assert page.find("input", name="act") == []
        for act_name in ("pause", "resume", "enable", "retry", "test", "redeliver", "redeliver-from", "delete"):
            sent = {"act": act_name, "id": name, "seq": "1"}
            assert helper.post(f"/webhooks/{task.id}/act", sent).status_code == 403
    assert list(PushConfig.objects.order_by("config_id").values()) == before
    assert AuditEntry.objects.count() == 0


def test_the_task_page_leads_to_the_webhook(staff: Client, task: Task) -> None:
    add_webhook(task, "a&b")
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.find("a", href=f"/webhooks/{task.id}/?id=a%26b") != []
