"""Signed URLs of parts in files: what they give, and to whom."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest

from tasks_app.content import links
from tests.content.conftest import Site, encoded, on_disk
from tests.content.test_parts import FILE, TEXT
from tests.support.callers import Caller
from tests.support.peers import message

PARTS: list[dict[str, Any]] = [
    {"raw": encoded(FILE), "filename": "../a\r\nb.bin", "mediaType": "image/svg+xml"},
    {"text": TEXT},
    {"data": {"long": "x" * 5000}},
    {"text": "small"},
]


@pytest.fixture
def parts(alice: Caller) -> list[dict[str, Any]]:
    """The parts of the message as the task gives them."""
    peer = alice.jsonrpc("mirror-urls")
    task = peer.send({"message": message(PARTS)})["task"]
    assert task["artifacts"][0]["parts"][0].keys() == {"url", "filename", "mediaType"}
    found: list[dict[str, Any]] = peer.get(task["id"])["history"][0]["parts"]
    return found


def test_files_and_texts_come_as_urls_and_data_stays_data(site: Site, parts: list[dict[str, Any]]) -> None:
    assert [{n: v for n, v in part.items() if n != "url"} for part in parts] == [
        {"filename": "../a\r\nb.bin", "mediaType": "image/svg+xml"}, {"mediaType": "text/plain"}, PARTS[2], PARTS[3],
    ]  # fmt: skip
    for part in parts[:2]:
        assert part["url"].startswith(f"{site.web.url}/files/")


def test_a_url_gives_the_file_and_nothing_that_runs(http: httpx.Client, parts: list[dict[str, Any]]) -> None:
    reply = http.get(parts[0]["url"])
    assert (reply.status_code, reply.content) == (200, FILE)
    expected = {
        "content-type": "image/svg+xml",
        "content-disposition": 'attachment; filename="_a_b.bin"',
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
        "content-length": str(len(FILE)),
    }
    assert {name: reply.headers[name] for name in expected} == expected
    text = http.get(parts[1]["url"])
    assert (text.text, text.headers["content-type"]) == (TEXT, "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("header", "status", "content"),
    [
        ({"range": "bytes=0-9"}, 206, FILE[:10]),
        ({"range": "bytes=10000-"}, 206, FILE[10000:]),
        ({"range": "bytes=-5"}, 206, FILE[-5:]),
        ({"range": f"bytes={len(FILE)}-"}, 416, b""),
        ({"range": "bytes=5-1"}, 200, FILE),
        ({"range": "bytes=0-1,4-5"}, 200, FILE),
        ({"range": "bytes=0-9", "if-range": '"another"'}, 200, FILE),
    ],
)
@on_disk
def test_ranges(
    http: httpx.Client, parts: list[dict[str, Any]], header: dict[str, str], status: int, content: bytes
) -> None:
    reply = http.get(parts[0]["url"], headers=header)
    assert (reply.status_code, reply.content) == (status, content)


def test_a_range_of_a_remote_file_and_what_has_not_changed(http: httpx.Client, parts: list[dict[str, Any]]) -> None:
    part = http.get(parts[0]["url"], headers={"range": "bytes=256-511"})
    assert (part.status_code, part.content) == (206, FILE[256:512])
    assert part.headers["content-range"] == f"bytes 256-511/{len(FILE)}"
    assert http.get(parts[0]["url"], headers={"if-none-match": part.headers["etag"]}).status_code == 304
    head = http.head(parts[0]["url"])
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(FILE)), b"")
    assert http.post(parts[0]["url"]).status_code == 405


@on_disk
def test_whoever_has_no_signature_of_the_host_gets_the_same_404(
    http: httpx.Client, site: Site, parts: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, other = parts[0]["url"], parts[1]["url"]
    plain, query = url.partition("?")[0], dict(parse_qsl(urlsplit(url).query))
    monkeypatch.setattr(links.time, "time", lambda now=time.time: now() - 3601)
    expired = links.file_url(site.web.url, plain.rpartition("/")[2])
    monkeypatch.undo()
    wrong = [
        plain,
        f"{plain}?{urlencode(query | {'expires': str(int(query['expires']) + 1)})}",
        f"{plain}?{urlencode(query | {'signature': query['signature'][:-1] + '!'})}",
        f"{plain}?{urlsplit(other).query}",
        expired,
        f"{site.web.url}/files/{'0' * 36}?{urlencode(query)}",
        f"{site.web.url}/files/..%2f..%2fsecret_key?{urlencode(query)}",
    ]
    replies = [http.get(one) for one in wrong]
    assert {(reply.status_code, reply.text) for reply in replies} == {
        (404, "There is no such file, or the link has expired.\n")
    }
    assert http.get(url).status_code == 200
