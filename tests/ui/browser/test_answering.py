"""People answer and cancel tasks in a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.deployment import wait_until
from tests.ui.browser.conftest import Site
from tests.ui.browser.test_looks import LOW_CONTRAST

Show = Callable[..., Page]


def audit(site: Site, task_id: str) -> list[tuple[str, ...]]:
    return site.deployment.query(
        "SELECT actor, action, agent, detail FROM tasks_app_auditentry WHERE task_id = %s ORDER BY id", [task_id]
    )


def end(site: Site, agent: str, task_id: str) -> dict[str, object]:
    """The task once it has ended."""
    ends = ("COMPLETED", "REJECTED", "FAILED", "CANCELED")
    return wait_until(
        lambda: (
            task if (task := site.call(agent, "GetTask", {"id": task_id}))["status"]["state"].endswith(ends) else None
        ),
        "the end of the task",
    )


@pytest.mark.parametrize("agent", ["auth", "wait"])
@pytest.mark.parametrize(("button", "outcome"), [("Approve", "COMPLETED"), ("Refuse", "REJECTED")])
def test_an_authorization(open_page: Show, site: Site, agent: str, button: str, outcome: str) -> None:
    """`auth` has returned, `wait` waits in the web process."""
    task = site.send(agent, "wait auth", wait=True)["task"]
    page = open_page(f"/tasks/{task['id']}/")
    expect(page.get_by_role("heading", name="Waits for an authorization")).to_be_visible()
    page.get_by_label("Note").fill("by phone")
    page.get_by_role("button", name=button).click()
    word = {"Approve": "Approved", "Refuse": "Refused"}[button]
    expect(page.get_by_role("status").first).to_have_text(f"{word}.")
    expect(page.locator(".facts .badge")).to_have_text(outcome.capitalize())
    expect(page.locator(".bubble-user").last).to_contain_text(f"{word} by ada.")
    expect(page.locator("#audit")).to_contain_text(f"{word}, with a note.")
    expect(page.locator("#answer .card")).to_have_count(0)
    assert audit(site, task["id"]) == [("ada", f"task.{button.lower()}", agent, f"{word}, with a note.")]
    message = end(site, agent, task["id"])["history"][-1]  # type: ignore[index]
    assert message["role"] == "ROLE_USER"
    assert message["metadata"] == {"answeredBy": "ada"}
    assert message["parts"][1] == {"data": {"approved": word == "Approved", "by": "ada", "note": "by phone"}}


def test_input_that_has_to_be_typed_twice(open_page: Show, site: Site) -> None:
    task = site.send("ask", "Book a table")["task"]
    page = open_page(f"/tasks/{task['id']}/")
    page.get_by_text("Data", exact=True).click()
    page.get_by_label("JSON").fill("{seats: 2}")
    page.get_by_label("Your answer").fill("for two\nat eight")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#data-error")).to_have_text("It is not JSON.")
    expect(page.get_by_label("Your answer")).to_have_value("for two\nat eight")
    assert audit(site, task["id"]) == []
    page.get_by_label("JSON").fill('{"seats": 2.0}')
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".facts .badge")).to_have_text("Completed")
    parts = end(site, "ask", task["id"])["history"][-1]["parts"]  # type: ignore[index]
    assert parts == [{"text": "for two\nat eight"}, {"data": {"seats": 2.0}}]
    assert audit(site, task["id"]) == [
        ("ada", "task.input", "ask", "Gave 16 characters of text and 14 characters of data.")
    ]


def test_who_comes_second_hears_it(open_page: Show, site: Site) -> None:
    task = site.send("ask", "Book a table")["task"]
    pages = [open_page(f"/tasks/{task['id']}/", offline=False) for _ in range(2)]
    pages[1].evaluate("for (const e of document.querySelectorAll('[data-watch]')) e.dataset.watch = ''")
    for page in pages:
        page.get_by_label("Your answer").fill("for two")
    pages[0].get_by_role("button", name="Send").click()
    expect(pages[0].get_by_role("status").first).to_have_text("Sent.")
    pages[1].get_by_role("button", name="Send").click()
    expect(pages[1].get_by_role("status").first).to_contain_text("Nothing was sent.")
    assert len(end(site, "ask", task["id"])["history"]) == 3  # type: ignore[arg-type]
    assert len(audit(site, task["id"])) == 1


def test_what_is_typed_survives_news_of_the_task(open_page: Show, site: Site) -> None:
    task = site.send("ask", "Book a table")["task"]
    page = open_page(f"/tasks/{task['id']}/")
    page.get_by_label("Your answer").fill("for tw")
    site.deployment.query("UPDATE tasks_app_task SET version = version + 1 WHERE id = %s", [task["id"]])
    page.evaluate("htmx.ajax('GET', location.pathname, {source: '#main', target: '#main', swap: 'sections'})")
    version = str(site.deployment.query("SELECT version FROM tasks_app_task WHERE id = %s", [task["id"]])[0][0])
    expect(page.locator("#task-head")).to_have_attribute("data-v", version)
    expect(page.get_by_label("Your answer")).to_have_value("for tw")


def test_a_task_is_cancelled_with_what_it_delegated(open_page: Show, site: Site) -> None:
    task = site.send("relay", "relay hold", wait=False)["task"]
    page = open_page(f"/tasks/{task['id']}/")
    expect(page.locator("#children")).to_contain_text("hold")
    page.get_by_text("Cancel task").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_role("status").first).to_have_text("Cancelled.")
    expect(page.locator(".facts .badge")).to_have_text("Canceled")
    assert audit(site, task["id"]) == [("ada", "task.cancel", "relay", "Cancelled.")]
    page.locator("#children a").click()
    expect(page.locator(".facts .badge")).to_have_text("Canceled")
    expect(page.get_by_text("Cancel task")).to_have_count(0)


def test_what_has_ended_meanwhile_is_not_cancelled(open_page: Show, site: Site) -> None:
    task = site.send("hold", "hold", wait=False)["task"]
    page = open_page(f"/tasks/{task['id']}/", offline=False)
    page.evaluate("for (const e of document.querySelectorAll('[data-watch]')) e.dataset.watch = ''")
    site.call("hold", "CancelTask", {"id": task["id"]})
    page.get_by_text("Cancel task").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_role("status").first).to_contain_text("It was not cancelled.")
    assert audit(site, task["id"]) == [("ada", "task.cancel", "hold", "Not cancelled: it had ended.")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read(open_page: Show, site: Site, scheme: str, width: int) -> None:
    for agent in ("ask", "auth"):
        task = site.send(agent, "wait")["task"]
        page = open_page(f"/tasks/{task['id']}/", width=width, color_scheme=scheme)
        page.get_by_text("Cancel task").click()
        expect(page.get_by_role("button", name="Cancel it")).to_be_visible()
        assert page.evaluate(LOW_CONTRAST) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if agent == "ask":
            page.get_by_text("Data", exact=True).click()
        box = page.locator(".confirm-body").bounding_box()
        assert box is not None
        assert box["x"] >= 0
