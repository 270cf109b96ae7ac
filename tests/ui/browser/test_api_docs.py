"""The page that shows the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_document_is_shown_in_the_theme_of_the_reader(
    open_page: Callable[..., Page], scheme: str, dark: bool
) -> None:
    page = open_page("/api/docs/", color_scheme=scheme)
    expect(page.get_by_text("/agents/{slug}/message:send", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark-mode')") is dark
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.evaluate("document.documentElement.classList.contains('dark-mode')") is False


def test_the_catalog_leads_to_it(open_page: Callable[..., Page]) -> None:
    page = open_page("/catalog/")
    page.get_by_role("link", name="API", exact=True).click()
    expect(page).to_have_title("API · a2a-host")
