"""The list of tasks in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.ui.browser.conftest import Site


def test_a_new_task_appears_by_itself(page: Page, site: Site) -> None:
    expect(page.locator("[data-live-sign]")).to_have_attribute("data-live-sign", "on")
    sent = site.send("hold", "hold 600", wait=False)["task"]["id"]
    line = page.locator(f"#task-{sent}")
    expect(line.locator(".badge")).to_have_text("Working")
    expect(line).to_contain_text("hold 600")
    site.call("hold", "CancelTask", {"id": sent})
    expect(line.locator(".badge")).to_have_text("Canceled")
    expect(page.locator("#count-canceled")).not_to_have_text("0")


def test_the_list_stays_fresh_without_the_stream(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("/tasks/")
    page.route("**/live/tasks", lambda route: route.fulfill(status=204))  # an EventSource gives up at 204
    page.reload()
    expect(page.locator("[data-live-sign]")).to_have_attribute("data-live-sign", "polling")
    sent = site.send("echo", "without a stream")["task"]["id"]
    expect(page.locator(f"#task-{sent}")).to_be_visible()


def test_filters_work_while_one_types_and_stay_in_the_address(page: Page, site: Site) -> None:
    wanted = site.send("echo", "a needle")["task"]["id"]
    other = site.send("reject", "a needle too")["task"]["id"]
    expect(page.locator(f"#task-{other}")).to_be_visible()
    page.get_by_label("Text in messages").fill("NEEDLE")
    expect(page.locator("#rows > tr")).to_have_count(2)
    page.get_by_text("Completed", exact=False).locator("input").check()
    expect(page.locator("#rows > tr")).to_have_count(1)
    expect(page.locator(f"#task-{wanted}")).to_be_visible()
    assert parse_qs(urlsplit(page.url).query) == {"text": ["NEEDLE"], "state": ["completed"]}
    page.reload()
    expect(page.locator("#rows > tr")).to_have_count(1)
    expect(page.get_by_label("Text in messages")).to_have_value("NEEDLE")
    page.get_by_role("link", name="Clear filters").click()
    expect(page.locator(f"#task-{other}")).to_be_visible()
    assert urlsplit(page.url).query == ""


def test_going_back_brings_the_older_filters(page: Page, site: Site) -> None:
    site.send("echo", "one")
    rejected = site.send("reject", "two")["task"]["id"]
    page.get_by_label("Agent").select_option("reject")
    expect(page.locator("#rows .cell-agent").first).to_have_text("reject")
    expect(page).to_have_url(re.compile(r"/tasks/\?agent=reject$"))
    page.get_by_text("Failed", exact=False).locator("input").check()
    expect(page.locator("#no-rows")).to_contain_text("No task matches")
    page.go_back()
    expect(page.locator(f"#task-{rejected}")).to_be_visible()
    expect(page.get_by_label("Agent")).to_have_value("reject")
    expect(page.locator("input:checked")).to_have_count(0)


def test_a_filtered_list_is_live_too(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("/tasks/?agent=ask")
    expect(page.locator("[data-live-sign]")).to_have_attribute("data-live-sign", "on")
    site.send("echo", "not asked for")
    sent = site.send("ask", "asked for")["task"]["id"]
    expect(page.locator(f"#task-{sent} .badge")).to_have_text("Input required")
    assert set(page.locator("#rows .cell-agent").all_text_contents()) == {"ask"}


def test_a_focused_row_keeps_the_focus_when_others_change(page: Page, site: Site) -> None:
    still = site.send("echo", "still")["task"]["id"]
    page.locator(f"#task-{still} .to-task").focus()
    sent = site.send("echo", "moving")["task"]["id"]
    expect(page.locator(f"#task-{sent}")).to_be_visible()
    expect(page.locator(f"#task-{still} .to-task")).to_be_focused()


def test_a_row_leads_to_its_task(page: Page, site: Site) -> None:
    sent = site.send("echo", "open me")["task"]["id"]
    page.locator(f"#task-{sent} .cell-state").click(force=True)  # anywhere in the row
    expect(page.get_by_role("heading", name="open me")).to_be_visible()
    assert urlsplit(page.url).path == f"/tasks/{sent}/"


def test_dead_letters_of_the_form_are_explained(open_page: Callable[..., Page]) -> None:
    page = open_page("/tasks/?until=2026-01-01T00:00&since=2026-01-02T00:00")
    expect(page.get_by_role("alert")).to_have_text("Until: This is before the start of the range.")
