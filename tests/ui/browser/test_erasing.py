"""Erasing in a browser: on a phone and in the dark too, nothing happens before the name is typed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.ui.browser.conftest import Site

WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_what_goes_is_shown_and_typed(open_page: Callable[..., Page], site: Site, width: int, scheme: str) -> None:
    site.send("echo", "hello")
    page = open_page("/admin/tasks_app/erasure/add/", width, color_scheme=scheme)
    page.get_by_label("Owner").fill("anonymous")
    page.get_by_role("button", name="Show what goes").click()
    expect(page.get_by_role("cell", name="anonymous").first).to_be_visible()
    assert page.evaluate(WIDER) == 0
    page.get_by_label("to go on:").fill("anonymus")
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("Type anonymous to erase it.")
    assert site.deployment.query("SELECT count(*) FROM tasks_app_erasure WHERE finished_at IS NULL") == [(0,)]
    page.get_by_label("to go on:").fill("anonymous")
    page.get_by_role("button", name="Erase", exact=True).click()
    page.wait_for_url("**/admin/tasks_app/erasure/")
    expect(page.locator("#result_list tbody tr").first).to_contain_text("running")
    assert site.deployment.query("DELETE FROM tasks_app_erasure RETURNING owner") == [("anonymous",)]
