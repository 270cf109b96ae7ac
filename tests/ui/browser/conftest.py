"""A headless Chromium of the machine, in front of a host as people run it.

The browser lives in this package only: while it does, its event loop counts as running in this thread, so neither the
ORM nor asynchronous tests work here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.contrib.auth.hashers import make_password
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect, sync_playwright

from protocol.ids import new_id
from tests.support.deployment import Deployment, Web

CHROMIUM = shutil.which("chromium")
_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
PATIENCE = 20_000

expect.set_options(timeout=PATIENCE)


class Site:
    """The host under test, and calls to its agents. `state` is a browser's storage after staff has signed in."""

    def __init__(self, deployment: Deployment, web: Web) -> None:
        self.deployment = deployment
        self.url = web.url
        self.state: StorageState | None = None

    def send(self, agent: str, *parts: dict[str, Any] | str, wait: bool = True, **message: str) -> dict[str, Any]:
        """The result of SendMessage; a part may be just a text."""
        body = {
            "messageId": new_id(),
            "role": "ROLE_USER",
            "parts": [{"text": part} if isinstance(part, str) else part for part in parts],
        }
        params = {"message": body | message, "configuration": {"returnImmediately": not wait}}
        return self.call(agent, "SendMessage", params)

    def call(self, agent: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a JSON-RPC call."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = httpx.post(f"{self.url}/agents/{agent}", json=request, headers={"A2A-Version": "1.0"}, timeout=30)
        result: dict[str, Any] = reply.json()["result"]
        return result


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Tests of pages need chromium (as root: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def site(chromium: Browser, postgres: str, broker: str) -> Iterator[Site]:
    with Deployment(postgres, broker) as deployment:
        deployment.query(
            "INSERT INTO auth_user (username, password, is_staff, is_superuser, is_active, first_name, last_name,"
            " email, date_joined) VALUES ('ada', %s, true, true, true, '', '', '', now())",
            [make_password("lovelace")],
        )
        yield Site(deployment, deployment.start_web())


@pytest.fixture(scope="package")
def signed_in(chromium: Browser, site: Site) -> StorageState:
    """The storage of a browser whose user has come in by the login page."""
    page = chromium.new_page()
    page.goto(site.url)
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("lovelace")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()
    assert page.url == f"{site.url}/tasks/"
    return page.context.storage_state()


@pytest.fixture
def open_page(chromium: Browser, site: Site, signed_in: StorageState) -> Iterator[Callable[..., Page]]:
    """`open_page(path, width=…, **context)` shows a path to staff. The browser must not complain until the end."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def show(path: str, width: int = 1280, **context: Any) -> Page:
        made = chromium.new_context(
            base_url=site.url, storage_state=signed_in, viewport={"width": width, "height": 900}, **context
        )
        made.set_default_timeout(PATIENCE)
        contexts.append(made)
        page = made.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda r: None if r.url.startswith(site.url) else complaints.append(f"asked {r.url}"))
        page.goto(path)
        return page

    yield show
    for made in contexts:
        made.close()
    assert complaints == []


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """The task list."""
    return open_page("/tasks/")
