"""Who may see the pages, and what they are sent with."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Agent
from tests.ui.support import Page, make_task

PATHS = ["/tasks/", "/tasks/{id}/", "/tasks/{id}/raw", "/tasks/{id}/task.json", "/tasks/{id}/events/1"]
PATHS += ["/tasks/{id}/files/m1/0", "/webhooks/", "/catalog/", "/queue/"]


@pytest.mark.parametrize("path", PATHS)
def test_strangers_are_sent_to_the_login_page(path: str, echo: Agent) -> None:
    path = path.format(id=make_task(echo).id)
    response = Client().get(path)
    assert (response.status_code, response["Location"]) == (302, f"/admin/login/?next={path}")


@pytest.mark.parametrize("path", PATHS)
def test_users_without_staff_rights_are_refused(path: str, echo: Agent) -> None:
    client = Client()
    client.force_login(User.objects.create(username="guest"))
    response = client.get(path.format(id=make_task(echo, "a secret").id))
    assert response.status_code == 403
    page = Page(response)
    assert page.texts("code") == ["403"]
    assert "a secret" not in page.html
    assert page.find("nav") == []


def test_somebody_who_lost_the_rights_is_refused(staff: Client) -> None:
    User.objects.update(is_active=False)
    assert staff.get("/tasks/").status_code == 302


@pytest.mark.parametrize("path", PATHS)
def test_pages_only_show(path: str, staff: Client, echo: Agent) -> None:
    path = path.format(id=make_task(echo).id)
    assert staff.post(path).status_code == 405
    assert staff.delete(path).status_code == 405


def test_the_start_page_leads_to_the_tasks(staff: Client) -> None:
    assert staff.get("/")["Location"] == "/tasks/"
    assert staff.get("/", follow=True).redirect_chain == [("/tasks/", 302)]
    assert Client().get("/", follow=True).redirect_chain == [("/tasks/", 302), ("/admin/login/?next=/tasks/", 302)]


def test_a_fragment_after_the_session_ended_reloads_the_page(db: None) -> None:
    response = Client().get("/tasks/", headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Refresh"], response.content) == (204, "true", b"")


def test_pages_forbid_inline_scripts_foreign_content_and_frames(staff: Client, echo: Agent) -> None:
    for path in ("/tasks/", f"/tasks/{make_task(echo).id}/", "/catalog/", "/nowhere"):
        response = staff.get(path)
        assert response["Content-Security-Policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
            "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
        assert response["Cache-Control"] == "no-store, private"
        assert response["X-Content-Type-Options"] == "nosniff"
        page = Page(response)
        assert all("src" in script for script in page.find("script"))
        assert page.find("style") == []
        assert [v for _, v in page.elements if "style" in v or any(name.startswith("on") for name in v)] == []
        sources = [v[name] for _, v in page.elements for name in ("src", "href") if name in v]
        assert [s for s in sources if not s.startswith(("/", "#", "?", "http://testserver/agents/"))] == []


def test_an_unknown_page_looks_like_the_others(staff: Client) -> None:
    response = staff.get("/nowhere")
    assert response.status_code == 404
    page = Page(response)
    assert page.text("main").startswith("404 There is nothing here")
    hrefs = [link["href"] for link in page.find("a")][:6]
    assert hrefs == ["#main", "/", "/tasks/", "/queue/", "/webhooks/", "/catalog/"]


def test_an_unknown_page_tells_strangers_nothing_more(db: None) -> None:
    page = Page(Client().get("/nowhere"))
    assert page.find("nav") == []
    assert page.text("main").startswith("404")


def test_a_broken_page_says_so_without_the_database(staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the secret cause")

    monkeypatch.setattr("tasks_app.pages.listing.read_page", broken)
    staff.raise_request_exception = False
    response = staff.get("/tasks/")
    assert response.status_code == 500
    assert "Content-Security-Policy" in response
    page = Page(response)
    assert page.text("main").startswith("500 Something broke on our side")
    assert "secret" not in page.html


def test_a_form_without_its_token_gets_a_page_too(db: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/admin/login/", {"username": "x", "password": "y"})
    assert response.status_code == 403
    assert Page(response).text("main").startswith("403 This form has expired")


def test_logging_out_ends_the_access(staff: Client) -> None:
    form = Page(staff.get("/tasks/")).find("form", method="post")
    assert [f["action"] for f in form] == ["/admin/logout/"]
    staff.post("/admin/logout/")
    assert staff.get("/tasks/").status_code == 302
