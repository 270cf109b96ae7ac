"""Erasing in the admin, and what the page of an agent says of tasks that go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.models import Agent, ApiKey
from protocol.states import TaskState
from protocol.timestamps import now
from tasks_app.models import Erasure, Task
from tests.ui.support import Page, make_agent, make_task

ADD = "/admin/tasks_app/erasure/add/"
LIST = "/admin/tasks_app/erasure/"


@pytest.fixture
def eraser(db: None) -> Client:
    """A browser of somebody who may erase."""
    user = User.objects.create(username="eraser", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["add_erasure", "view_erasure"]))
    client = Client()
    client.force_login(user)
    return client


def test_support_without_the_permission_may_not(staff: Client, echo: Agent) -> None:
    for path in (ADD, LIST):
        assert staff.get(path).status_code == 403
    assert staff.post(ADD, {"owner": "alice", "erase": "1", "confirm": "alice"}).status_code == 403
    assert Erasure.objects.count() == 0


def test_it_shows_what_goes_and_wants_the_name_typed(eraser: Client, echo: Agent) -> None:
    make_task(echo, owner="alice")
    make_task(echo, owner="alice", state=TaskState.INPUT_REQUIRED)
    make_task(echo, owner="bob")
    ApiKey.issue("key", "alice")
    page = Page(eraser.post(ADD, {"owner": "alice"}))
    text = " ".join(page.html.split())
    assert "This erases 2 tasks of alice" in text
    assert "1 of them is not finished and will be cancelled first." in text
    assert "1 API key stays: who has one can send again." in text
    assert "<td>bob</td>" not in text
    for typed in ("", "bob", "alice "):
        refused = Page(eraser.post(ADD, {"owner": "alice", "erase": "1", "confirm": typed}))
        assert refused.texts("agents-error") == ["Type alice to erase it."]
    assert (Erasure.objects.count(), Task.objects.count()) == (0, 3)
    done = eraser.post(ADD, {"owner": "alice", "erase": "1", "confirm": "alice", "with_keys": "on"}, follow=True)
    assert done.redirect_chain == [(LIST, 302)]
    erasure = Erasure.objects.get()
    assert (erasure.owner, erasure.with_keys, erasure.requested_by) == ("alice", True, "eraser")
    assert f"Everything of {erasure.reference} is being erased." in done.content.decode()
    assert Page(done).html.count("alice") == 0


def test_a_context_is_named_with_its_agent(eraser: Client, echo: Agent) -> None:
    make_task(echo, owner="alice", context_id="c-1")
    refused = Page(eraser.post(ADD, {"context_id": "c-1"}))
    assert refused.texts("agents-error") == ["A context belongs to an agent: say which."]
    assert "This erases 1 task at echo in the context c-1" in " ".join(
        eraser.post(ADD, {"context_id": "c-1", "agent": "echo"}).content.decode().split()
    )


def test_what_callers_are_called_is_shown_as_text(eraser: Client, echo: Agent) -> None:
    make_task(echo, owner="<b>alice</b>")
    page = eraser.post(ADD, {"owner": "<b>alice</b>"}).content.decode()
    assert "<b>alice" not in page
    assert "&lt;b&gt;alice&lt;/b&gt;" in page


def test_nothing_of_an_erasure_can_be_changed(eraser: Client) -> None:
    erasure = Erasure.objects.create(requested_by="eraser", owner="alice", reference="principal 1")
    User.objects.filter(username="eraser").update(is_superuser=True)
    assert eraser.post(f"{LIST}{erasure.pk}/delete/", {"post": "yes"}).status_code == 403
    assert eraser.post(f"{LIST}{erasure.pk}/change/", {"owner": "bob"}).status_code == 403
    assert Erasure.objects.get().owner == "alice"


def test_an_agents_page_says_what_goes(admin_client: Client) -> None:
    agent = make_agent("keeper", keep_completed_days=10)
    for days in (11, 12, 9):
        make_task(agent, at=now() - timedelta(days=days))
    page = " ".join(admin_client.get(f"/admin/agents/agent/{agent.pk}/change/").content.decode().split())
    assert "<td>Completed</td> <td>10 days</td> <td>2</td> <td>0</td>" in page
    other = make_agent("hoarder")
    page = admin_client.get(f"/admin/agents/agent/{other.pk}/change/").content.decode()
    assert "Every task is kept for ever: no limit is set above." in page
