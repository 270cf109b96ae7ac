"""The parts of the admin that need a browser: rows that are added in the form, and buttons."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
from playwright.sync_api import Page, expect

from tests.support.deployment import wait_until
from tests.ui.browser.conftest import Site

ADD = "/admin/agents/agent/add/"
URI = "https://e.test/extensions/geo/v1"


def test_an_agent_with_extensions_notes_and_groups(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page(ADD)
    page.locator("#id_slug").fill("browsed")
    page.locator("#id_name").fill("Browsed")
    page.locator("#id_description").fill("Made in a browser.")
    page.locator("#id_kind").select_option("simulator")
    page.locator("#id_executor").fill("echo")
    page.locator("#id_versions").select_option("1.0")
    page.locator("#id_extended_card").check()
    page.locator("#id_skills-0-skill_id").fill("public")
    page.locator("#id_skills-0-name").fill("Public")
    page.locator("#id_skills-0-description").fill("For all.")
    page.locator("#id_skills-0-tags").fill("all")
    add_row(page, "extensions")
    page.locator("#id_extensions-0-uri").fill("geo, v1")
    page.locator("#id_extensions-0-required").check()
    page.locator("#id_extensions-0-params").fill('{"unit": "m"}')
    add_row(page, "notes")
    page.locator("#id_notes-0-text").fill("For staff.")
    page.locator("#id_notes-0-groups").fill("staff")
    save(page)
    expect(page.get_by_text("Use a URI, such as https://e")).to_be_visible()
    assert page.url.endswith(ADD)
    page.locator("#id_extensions-0-uri").fill(URI)
    save(page)
    page.wait_for_url("**/admin/agents/agent/")
    card = card_of(site, "browsed")
    assert card["capabilities"]["extensions"] == [{"uri": URI, "required": True, "params": {"unit": "m"}}]
    assert card["capabilities"]["extendedAgentCard"] is True
    assert card["description"] == "Made in a browser."


def test_signing_keys_are_made_rotated_and_retired(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("/admin/agents/signingkey/add/")
    page.locator("#id_algorithm").select_option("ES256")
    save(page)
    page.wait_for_url("**/admin/agents/signingkey/")
    states = page.locator("#result_list tbody tr")
    expect(states).to_have_count(1)
    expect(states.first).to_contain_text("Active")
    wait_until(lambda: "signatures" in card_of(site, "echo"), "a signed card", patience=5)
    page.get_by_role("button", name="Rotate").click()
    expect(page.get_by_text("signs from now on.")).to_be_visible()
    expect(states).to_have_count(2)
    expect(states.nth(0)).to_contain_text("Active")
    expect(states.nth(1)).to_contain_text("Retired")
    keys = httpx.get(f"{site.url}/.well-known/jwks.json").json()["keys"]
    assert len(keys) == 2
    assert not any("d" in key for key in keys)
    states.nth(1).get_by_role("link").first.click()
    expect(page.get_by_text(keys[1]["kid"]).first).to_be_visible()
    assert page.get_by_role("button", name=re.compile("^Save")).count() == 0
    site.deployment.query("DELETE FROM agents_signingkey")


def add_row(page: Page, prefix: str) -> None:
    """Press the button that adds a row to a part of the form."""
    page.locator(f"#{prefix}-group a.add-row").click()


def save(page: Page) -> None:
    page.locator("[name=_save]").click()


def card_of(site: Site, slug: str) -> dict[str, dict[str, object]]:
    def found() -> bool:
        return httpx.get(url).status_code == 200

    url = f"{site.url}/agents/{slug}/.well-known/agent-card.json"
    wait_until(found, slug, patience=5)
    card: dict[str, dict[str, object]] = httpx.get(url).json()
    return card
