"""The page of a task in a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.ui.browser.conftest import Site
from tests.ui.test_hostile import MARKDOWN, TEXTS

Show = Callable[..., Page]


def test_a_running_task_is_followed_to_its_end(open_page: Show, site: Site) -> None:
    task = site.send("steps", "steps 40 250", wait=False)["task"]
    page = open_page(f"/tasks/{task['id']}/")
    expect(page.locator(".facts .badge")).to_have_text("Working")
    expect(page.locator("#artifacts")).to_contain_text("chunk 3")
    first = page.locator("#event-2 details")
    first.locator("summary").click()
    expect(first.locator(".code")).to_contain_text('"artifactUpdate"')
    expect(page.locator(".facts .badge")).to_have_text("Completed")
    expect(page.locator("#artifacts .part-plain")).to_have_text("".join(f"chunk {n}\n" for n in range(1, 41)).strip())
    expect(page.locator("#timeline > li")).to_have_count(3)
    expect(page.locator("#log > tr")).to_have_count(42)
    expect(first).to_have_attribute("open", "")
    expect(first.locator(".code")).to_be_visible()
    expect(page.locator("[data-live-sign]")).to_be_hidden()
    expect(page).to_have_title(re.compile("^Completed: steps "))


def test_a_follow_up_is_seen_by_those_who_watch(open_page: Show, site: Site) -> None:
    task = site.send("ask", "Book a table")["task"]
    page = open_page(f"/tasks/{task['id']}/")
    expect(page.locator(".facts .badge")).to_have_text("Input required")
    site.send("ask", "For two", taskId=task["id"])
    expect(page.locator(".facts .badge")).to_have_text("Completed")
    expect(page.locator(".bubble-user")).to_have_count(2)
    expect(page.locator(".bubble-user").last).to_contain_text("For two")


def test_raw_json_opens_and_is_copied(open_page: Show, site: Site) -> None:
    task = site.send("echo", "copy me")["task"]
    page = open_page(f"/tasks/{task['id']}/", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_text("Raw JSON").click()
    expect(page.locator("#raw-body .code")).to_contain_text('"TASK_STATE_COMPLETED"')
    page.locator("#raw-body").get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status")).to_have_text("Copied")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied == site.call("echo", "GetTask", {"id": task["id"]})
    page.get_by_role("button", name="Copy the task id").click()
    page.wait_for_function(f"navigator.clipboard.readText().then((text) => text === '{task['id']}')")


def test_parts_of_every_kind(open_page: Show, site: Site) -> None:
    csv = base64.b64encode(b"a,b\n1,2\n").decode()
    task = site.send(
        "data",
        {"text": "# Report\n\n- **one**\n- two", "mediaType": "text/markdown"},
        {"data": {"n": 1.5, "name": "你好"}},
        {"raw": base64.b64encode(_png()).decode(), "mediaType": "image/png", "filename": "dot.png"},
        {"raw": csv, "mediaType": "text/csv", "filename": "table.csv"},
        {"url": "https://example.com/annex.pdf", "mediaType": "application/pdf"},
    )["task"]
    page = open_page(f"/tasks/{task['id']}/")
    artifact = page.locator("#artifacts")
    expect(artifact.get_by_role("heading", name="Report")).to_be_visible()
    expect(artifact.locator(".prose li strong")).to_have_text("one")
    expect(artifact.locator(".part-code .code")).to_contain_text('"name": "你好"')
    image = artifact.get_by_role("img", name="dot.png")
    image.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('#artifacts img').naturalWidth === 3")
    expect(artifact.get_by_role("link", name="https://example.com/annex.pdf")).to_be_visible()
    with page.expect_download() as download:
        artifact.locator(".file", has_text="table.csv").get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "table.csv"
    assert download.value.path().read_bytes() == b"a,b\n1,2\n"


def test_hostile_texts_do_nothing(open_page: Show, site: Site) -> None:
    parts = [{"text": text} for text in (*TEXTS, *MARKDOWN)]
    parts += [{"text": text, "mediaType": "text/markdown"} for text in MARKDOWN]
    parts += [{"url": text} for text in TEXTS] + [{"data": {text: text}} for text in TEXTS]
    svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(2)</script></svg>"
    parts += [{"raw": base64.b64encode(svg.encode()).decode(), "mediaType": "image/svg+xml", "filename": "x.svg"}]
    task = site.send("data", *parts)["task"]
    page = open_page(f"/tasks/{task['id']}/")
    page.get_by_text("Raw JSON").click()
    expect(page.locator("#raw-body .code")).to_be_visible()
    for summary in page.locator("#log summary").all():
        summary.click()
    expect(page.locator("#log .code")).to_have_count(3)
    page.locator("#artifacts img").scroll_into_view_if_needed()
    assert page.locator("main script, main iframe, main [onerror], main [onload], main [data-hx-get]").count() == 0
    assert page.evaluate("fetch('/tasks/').then((reply) => reply.url)").endswith("/tasks/")  # still signed in


@pytest.mark.parametrize("path", ["/tasks/nope/", "/nowhere"])
def test_what_is_not_there(path: str, site: Site, open_page: Show) -> None:
    page = open_page("/catalog/")
    reply = page.request.get(path)
    assert reply.status == 404
    assert "There is nothing here" in reply.text()


def _png() -> bytes:
    """A picture of three points."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)

    head = (3).to_bytes(4) + (1).to_bytes(4) + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(10))) + chunk(b"IEND", b"")
