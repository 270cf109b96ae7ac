"""What people may do with a task on its page, and what the audit log says of it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.models import Agent
from protocol.states import TaskState
from tasks_app.models import AuditEntry
from tests.ui.support import Page, make_task


def client_of(name: str, *permissions: str, **fields: bool) -> Client:
    """A browser of somebody on the staff who has these permissions."""
    user = User.objects.create(username=name, is_staff=True, **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("state", "buttons"),
    [
        (TaskState.AUTH_REQUIRED, ["approve", "refuse"]),
        (TaskState.INPUT_REQUIRED, ["input"]),
        (TaskState.WORKING, []),
        (TaskState.COMPLETED, []),
        (TaskState.UNSPECIFIED, []),
    ],
)
def test_the_buttons_fit_the_state(echo: Agent, state: TaskState, buttons: list[str]) -> None:
    task = make_task(echo, state=state, attempt=3)
    page = Page(client_of("ada", "answer_task").get(f"/tasks/{task.id}/"))
    assert [b["value"] for b in page.find("button", name="verdict")] == buttons
    assert [i["value"] for i in page.find("input", name="attempt")] == (["3"] if buttons else [])
    ended = state in (TaskState.COMPLETED, TaskState.UNSPECIFIED)
    assert bool(page.find("form", action=f"/tasks/{task.id}/cancel")) is not ended


def test_without_the_permission_there_is_nothing_to_press(staff: Client, echo: Agent) -> None:
    task = make_task(echo, state=TaskState.AUTH_REQUIRED)
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.find("button", name="verdict") == []
    assert "Cancel task" not in page.html
    for act in ("answer", "cancel"):
        assert staff.post(f"/tasks/{task.id}/{act}", {"verdict": "approve", "attempt": "1"}).status_code == 403
    assert AuditEntry.objects.count() == 0


def test_strangers_and_forged_forms_are_refused(db: None, echo: Agent) -> None:
    task = make_task(echo, state=TaskState.AUTH_REQUIRED)
    sent = {"verdict": "approve", "attempt": "1"}
    assert Client().post(f"/tasks/{task.id}/answer", sent).status_code == 302
    checking = Client(enforce_csrf_checks=True)
    checking.force_login(User.objects.create(username="ada", is_staff=True, is_superuser=True))
    for act in ("answer", "cancel"):
        assert checking.post(f"/tasks/{task.id}/{act}", sent).status_code == 403
        assert checking.get(f"/tasks/{task.id}/{act}").headers["Location"] == f"/tasks/{task.id}/"
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ({"verdict": "maybe", "attempt": "1"}, "The form was not sent whole. Load the page again."),
        ({"verdict": "approve", "attempt": "x"}, "The form was not sent whole. Load the page again."),
        ({"verdict": "approve", "attempt": "1", "note": "n" * 2001}, "At most 2000 characters."),
    ],
)
def test_a_form_that_is_not_whole(echo: Agent, sent: dict[str, str], problem: str) -> None:
    task = make_task(echo, state=TaskState.AUTH_REQUIRED)
    response = client_of("ada", "answer_task").post(f"/tasks/{task.id}/answer", sent)
    assert response.status_code == 200
    assert problem in Page(response).html
    assert AuditEntry.objects.count() == 0


def test_the_page_shows_what_people_did_and_what_was_delegated(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    child = make_task(echo, state=TaskState.WORKING, parent_id=task.id)
    AuditEntry.objects.create(actor="ada", action="task.approve", agent="echo", task_id=task.id, detail="Approved.")
    AuditEntry.objects.create(actor="bob", action="task.input", agent="echo", task_id=child.id, detail="Gave <b>.")
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert "ada task.approve Approved." in page.text("audit")
    assert "bob" not in page.text("audit")
    assert page.text("children").startswith("Delegated 1 Working echo")
    below = Page(staff.get(f"/tasks/{child.id}/"))
    assert "Gave &lt;b&gt;." in below.html
    assert {"href": f"/tasks/{task.id}/", "class": "mono clip", "title": f"Task {task.id}"} in below.find("a")


def test_the_audit_log_is_searched_and_never_changed(echo: Agent) -> None:
    for number, action in enumerate(["task.approve", "task.cancel"], start=1):
        AuditEntry.objects.create(actor=f"u{number}", action=action, agent="echo", task_id=f"t-{number}", detail=action)
    root = client_of("root", is_superuser=True)
    url = "/admin/tasks_app/auditentry/"
    for query, found in [
        ({"q": "t-1"}, ["t-1"]),
        ({"action": "task.cancel"}, ["t-2"]),
        ({"actor": "u1"}, ["t-1"]),
        ({}, ["t-2", "t-1"]),
    ]:
        html = root.get(url, query).content.decode()
        assert [t for t in ("t-2", "t-1") if f'href="/tasks/{t}/"' in html] == found
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert root.get(f"{url}add/").status_code == 403
    assert root.post(f"{url}{entry.pk}/change/", {"actor": "x"}).status_code == 403
    assert root.post(f"{url}{entry.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client_of("support").get(url).status_code == 403
    assert AuditEntry.objects.count() == 2
