"""Parts that are kept in files: the page shows a link and how a text begins, never megabytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from agents.models import Agent
from protocol.ids import new_id
from protocol.model import Part
from protocol.stored_part import START_MAX, StoredPart
from tasks_app import models
from tasks_app.content import storage
from tasks_app.content.sources import BytesContent
from tasks_app.models import Message as MessageRow
from tests.ui.support import Page, make_task

TEXT = "The beginning of a long story. " * 20_000
FILE = bytes(range(256)) * 2000
DATA = b'{"n":1.0}'


@pytest.fixture
def task(echo: Agent) -> Iterator[models.Task]:
    """A task whose message has a text, a file and data in files."""
    contents = {"text": TEXT.encode(), "raw": FILE, "data": DATA}
    parts, ids = [], []
    for kind, content in contents.items():
        part_id = new_id()
        storage.write(part_id, BytesContent(content))
        ids.append(part_id)
        start = TEXT[:START_MAX] if kind == "text" else ""
        part = Part(filename="a.bin", media_type="application/x-thing") if kind == "raw" else Part()
        parts.append(StoredPart(kind, part_id, len(content), start).stand_in(part))  # type: ignore[arg-type]
    yield make_task(echo, parts, has_stored_parts=True)
    for part_id in ids:
        storage.delete(storage.name_of(part_id))


def test_the_page_shows_how_a_text_begins_and_links_to_the_rest(staff: Client, task: models.Task) -> None:
    response = staff.get(f"/tasks/{task.id}/")
    assert len(response.content) < 100_000
    page = Page(response)
    assert page.texts("part-plain") == [" ".join(TEXT[:START_MAX].split())]
    assert page.texts("file") == [
        "a.bin application/x-thing, 500.0 KB Download",
        "Unnamed file application/json, 9 bytes Download",
    ]
    assert [link["href"] for link in page.find("a", download="")][:3] == [
        f"/tasks/{task.id}/files/m1/{index}" for index in range(3)
    ]


def test_downloads_are_the_files(staff: Client, task: models.Task) -> None:
    for index, (content, media_type) in enumerate(
        [(TEXT.encode(), "text/plain; charset=utf-8"), (FILE, "application/x-thing"), (DATA, "application/json")]
    ):
        response = staff.get(f"/tasks/{task.id}/files/m1/{index}")
        assert b"".join(response) == content
        assert response["Content-Type"] == media_type
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def test_the_text_search_finds_the_beginning(staff: Client, task: models.Task) -> None:
    (row,) = MessageRow.objects.filter(task=task)
    assert row.search == TEXT[:START_MAX]
    found = [task.id in staff.get("/tasks/", {"text": text}).content.decode() for text in ("of a long", "of a short")]
    assert found == [True, False]


def test_the_whole_task_has_the_content(staff: Client, task: models.Task) -> None:
    parts = staff.get(f"/tasks/{task.id}/task.json").json()["history"][0]["parts"]
    assert (parts[0], parts[2]) == ({"text": TEXT}, {"data": {"n": 1.0}})
    assert (parts[1]["filename"], len(parts[1]["raw"])) == ("a.bin", (len(FILE) + 2) // 3 * 4)
    raw = staff.get(f"/tasks/{task.id}/raw").content.decode()
    assert "/files/" in raw
    assert TEXT[:START_MAX] not in raw


def test_a_file_that_is_gone_is_not_found(staff: Client, task: models.Task) -> None:
    (row,) = MessageRow.objects.filter(task=task)
    part_id = row.body.split("stored:raw:")[1][:36]
    storage.delete(storage.name_of(part_id))
    assert staff.get(f"/tasks/{task.id}/files/m1/1").status_code == 404
    assert staff.get(f"/tasks/{task.id}/").status_code == 200
