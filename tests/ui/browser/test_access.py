"""Sessions in front of a real host."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.hashers import make_password
from playwright.sync_api import Browser, Page, expect

from tests.ui.browser.conftest import Site

_USER = (
    "INSERT INTO auth_user (username, password, is_staff, is_superuser, is_active, first_name, last_name, email,"
    " date_joined) VALUES (%s, %s, true, false, true, '', '', '', now())"
)


def test_rights_that_are_taken_away_are_gone_at_once(chromium: Browser, site: Site) -> None:
    site.deployment.query(_USER, ["bob", make_password("babbage")])
    page = chromium.new_page(base_url=site.url)
    page.goto("/tasks/?state=failed")
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Password").fill("babbage")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_label("Failed")).to_be_checked()  # the login led back to the page that was asked for
    with page.expect_response("**/live/tasks") as stream:
        page.reload()
    assert stream.value.status == 200
    site.deployment.query("UPDATE auth_user SET is_staff = false WHERE username = 'bob'")
    assert page.request.get("/live/tasks").status == 403
    assert page.request.get("/tasks/").status == 403
    page.context.close()


def test_a_wrong_password_is_told(chromium: Browser, site: Site) -> None:
    page = chromium.new_page(base_url=site.url)
    page.goto("/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("byron")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("Please enter the correct username and password")).to_be_visible()
    assert page.request.get("/live/tasks").status == 403
    page.context.close()


def test_a_page_whose_session_ended_leads_to_the_login(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("/tasks/")
    expect(page.locator("[data-live-sign]")).to_have_attribute("data-live-sign", "on")
    page.context.clear_cookies()
    page.evaluate("htmx.ajax('GET', '/tasks/', { target: '#main', swap: 'sections' })")
    page.wait_for_url("**/admin/login/?next=/tasks/")  # a fragment for nobody reloads the page
