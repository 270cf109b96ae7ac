"""Whatever callers and agents write stays text: it cannot become markup, script or a foreign request."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.models import Agent
from protocol.model import Part, Role
from protocol.states import TaskState
from tests.ui.support import (
    Page,
    add_artifact,
    add_message,
    add_status,
    data_part,
    make_agent,
    make_task,
    text_message,
)

MARK = "<script>alert(1)</script>"
TEXTS = [
    MARK,
    '"><img src=x onerror=alert(1)>',
    "'--></style></script><svg onload=alert(1)>",
    "</textarea><iframe srcdoc='<script>alert(1)</script>'>",
    '<a hx-get="/admin/logout/" hx-trigger="load">x</a>',
    '<div data-watch="*" data-live id="rows" data-hx-get="/x">x</div>',
    "javascript:alert(1)",
    "{{ request.user.password }}{% load ui %}",
    "\u202etxt.exe\u2066",
]
MARKDOWN = [
    f"# Title\n{MARK}",
    "# x\n[click](javascript:alert(1))",
    "# x\n[click](JaVaScRiPt:alert(1))",
    "# x\n[click](data:text/html;base64,PHNjcmlwdD4=)",
    "# x\n[click](vbscript:x)",
    "# x\n<javascript:alert(1)>",
    "# x\n![pixel](https://tracker.test/p.png)",
    "# x\n<img src=x onerror=alert(1)>",
    '# x\n[a](https://e.test "\\" onmouseover=alert(1)")',
    "# x\n```<img src=x onerror=alert(1)>\ncode\n```",
    '# x\n```html\n<b onclick="alert(1)">\n```',
    "# x\n| a |\n|---|\n| <svg/onload=alert(1)> |",
    "# x\n[ref]: javascript:alert(1)\n[ref]",
]


def harmless(page: Page) -> None:
    """No element of the page comes from hostile text."""
    for tag, attributes in page.elements:
        assert tag not in ("iframe", "object", "embed", "base", "style", "textarea", "math"), (tag, attributes)
        for name, value in attributes.items():
            assert not name.startswith(("on", "data-hx")), (tag, attributes)
            assert name not in ("style", "srcdoc", "formaction"), (tag, attributes)
            if name in ("hx-get", "hx-post"):
                assert value.startswith("/tasks/"), (tag, attributes)
            if name in ("href", "src"):
                foreign = ("https://e.test", "https://tracker.test/p.png", "http://testserver/") if tag == "a" else ()
                assert value.startswith(("/", "#", "?", *foreign)), (tag, attributes)
    assert all("src" in script for script in page.find("script"))


@pytest.mark.parametrize("text", TEXTS)
def test_text_in_every_place_stays_text(text: str, staff: Client) -> None:
    agent = make_agent(name=text, description=text, executor="echo")
    task = make_task(agent, text, TaskState.WORKING, owner=text, context_id=text, worker=text, dialect=text[:20])
    parts = [
        Part(text=text, filename=text, media_type=text),
        Part(text=text, filename="a.html", media_type="text/html"),
        Part(raw="PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==", filename=text, media_type="text/html"),
        Part(raw="AAAA", filename=text, media_type="image/svg+xml"),
        Part(raw="AAAA", filename=text, media_type=text),
        data_part('{"<script>alert(1)</script>":"</pre><script>alert(1)</script>"}', filename=text),
        Part(url=text, filename=text, media_type=text),
    ]
    add_artifact(task, text, parts, name=text)
    add_artifact(task, text, [Part(text=text)], append=True)
    add_message(task, text_message(text, Role.USER, message_id=text), 2, after=2)
    add_status(task, TaskState.WORKING, 3, text_message(text, message_id=f"{text}-2"))
    for path in ["/tasks/", f"/tasks/{task.id}/", f"/tasks/{task.id}/raw", "/catalog/"] + [
        f"/tasks/{task.id}/events/{seq}" for seq in (1, 2, 3)
    ]:
        response = staff.get(path)
        assert response.status_code == 200
        page = Page(response)
        harmless(page)
        ids = [v["id"] for _, v in page.elements if "id" in v]
        assert len(ids) == len(set(ids)), path
    page = Page(staff.get("/tasks/", {"text": text, "owner": text, "context": text, "agent": text, "state": text}))
    harmless(page)
    harmless(Page(staff.get("/catalog/", {"q": text})))


@pytest.mark.parametrize("text", MARKDOWN)
@pytest.mark.parametrize("media_type", ["", "text/markdown"])
def test_markdown_is_sanitised(text: str, media_type: str, staff: Client, echo: Agent) -> None:
    task = make_task(echo, [Part(text=text, media_type=media_type)])
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert 'class="prose"' in page.html
    harmless(page)
    assert page.find("img") == [{"src": "/static/favicon.svg", "alt": ""}]
    foreign = [a for a in page.find("a") if a["href"].startswith("http")]
    assert [a["rel"] for a in foreign] == ["noopener noreferrer nofollow"] * len(foreign)


@pytest.mark.parametrize("artifact_id", ["rows", "task-head", "main", "voice", "count", "s-cut", "log"])
def test_ids_of_agents_do_not_collide_with_those_of_the_page(artifact_id: str, staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_artifact(task, artifact_id, [Part(text="x")])
    add_status(task, TaskState.COMPLETED, 2, text_message("y", message_id=artifact_id))
    ids = [v["id"] for _, v in Page(staff.get(f"/tasks/{task.id}/")).elements if "id" in v]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "//e.test/x",
        "/admin/logout/",
        "data:text/html,x",
        "file:///etc/passwd",
        "https:",
        "http://[::1",
        "",
    ],
)
def test_urls_that_are_no_web_addresses_are_no_links(url: str, staff: Client, echo: Agent) -> None:
    task = make_task(echo, [Part(url=url)])
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert page.texts("file") == [f"{url} not a web address".strip()]
    assert [a for a in page.find("a") if "target" in a] == []


def test_a_web_address_is_a_link_that_tells_nothing(staff: Client, echo: Agent) -> None:
    url = 'https://e.test/a?b=1&c="2"'
    task = make_task(echo, [Part(url=url, media_type="image/png")])
    (link,) = Page(staff.get(f"/tasks/{task.id}/")).find("a", target="_blank")
    assert (link["href"], link["rel"]) == (url, "noopener noreferrer nofollow")
