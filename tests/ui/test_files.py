"""Downloads out of messages and artifacts."""

from __future__ import annotations

import base64

import pytest
from django.test import Client

from agents.models import Agent
from protocol.model import Part
from protocol.states import TaskState
from tests.ui.support import Page, add_artifact, add_status, data_part, make_task, text_message

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_an_image_is_shown_and_sent_as_a_download(staff: Client, echo: Agent) -> None:
    task = make_task(echo, [Part(text="look"), Part(raw=b64(PNG), media_type="image/png", filename="dot.png")])
    page = Page(staff.get(f"/tasks/{task.id}/"))
    path = f"/tasks/{task.id}/files/m1/1"
    assert page.find("img", src=path) == [{"src": path, "alt": "dot.png", "loading": "lazy"}]
    assert page.texts("file") == ["dot.png image/png, 70 bytes Download"]
    response = staff.get(path)
    assert response.content == PNG
    assert response["Content-Type"] == "image/png"
    assert response["Content-Disposition"] == 'attachment; filename="dot.png"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert response["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    ("part", "content", "media_type", "filename"),
    [
        (
            Part(raw=b64(b"\xff\x00"), media_type="application/pdf", filename="a.pdf"),
            b"\xff\x00",
            "application/pdf",
            "a.pdf",
        ),
        (Part(raw=""), b"", "application/octet-stream", "e1-1.bin"),
        (Part(raw=b64(b"x"), media_type="Text/CSV; header=present"), b"x", "text/csv", "e1-1.csv"),
        (Part(raw=b64(b"x"), media_type="text/html\r\nX-Evil: 1"), b"x", "application/octet-stream", "e1-1.bin"),
        (Part(text="žluť"), "žluť".encode(), "text/plain; charset=utf-8", "e1-1.txt"),
        (Part(text="a", media_type="text/x-python", filename="a.py"), b"a", "text/x-python; charset=utf-8", "a.py"),
        (data_part('{"n":1.0}'), b'{"n":1.0}', "application/json", "e1-1.json"),
        (Part(raw=b64(b"x"), filename="../../etc/passwd"), b"x", "application/octet-stream", "_.._etc_passwd"),
        (Part(raw=b64(b"x"), filename="a\r\nX-Evil: 1"), b"x", "application/octet-stream", "a_X-Evil: 1"),
        (Part(raw=b64(b"x"), filename="..."), b"x", "application/octet-stream", "e1-1.bin"),
    ],
)
def test_content_and_headers(
    part: Part, content: bytes, media_type: str, filename: str, staff: Client, echo: Agent
) -> None:
    task = make_task(echo)
    add_artifact(task, "a", [part])
    response = staff.get(f"/tasks/{task.id}/files/e1/0")
    assert response.content == content
    assert response["Content-Type"] == media_type
    assert response["Content-Disposition"] == f'attachment; filename="{filename}"'
    assert "X-Evil" not in response


def test_a_name_beyond_ascii_is_encoded(staff: Client, echo: Agent) -> None:
    task = make_task(echo, [Part(raw="AA==", filename='订单 "1".pdf')])
    response = staff.get(f"/tasks/{task.id}/files/m1/0")
    assert response["Content-Disposition"] == "attachment; filename*=utf-8''%E8%AE%A2%E5%8D%95%20%221%22.pdf"


def test_files_of_status_messages(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_status(task, TaskState.WORKING, 1)
    message = text_message("see")
    message.parts.append(Part(raw=b64(b"log"), filename="run.log"))
    add_status(task, TaskState.FAILED, 2, message)
    assert staff.get(f"/tasks/{task.id}/files/e2/1").content == b"log"
    assert f"/tasks/{task.id}/files/e2/1" in {a["href"] for a in Page(staff.get(f"/tasks/{task.id}/")).find("a")}


@pytest.mark.parametrize("path", ["m1/1", "m2/0", "e1/0", "e9/0", "x1/0", "m0/0", "m1/-1", "m1/x", "m99999999999/0"])
def test_what_is_not_there_is_not_found(path: str, staff: Client, echo: Agent) -> None:
    task = make_task(echo, [Part(raw="AA==")])
    add_status(task, TaskState.WORKING, 1)
    assert staff.get(f"/tasks/{task.id}/files/{path}").status_code == 404


def test_a_url_is_no_file_of_the_host(staff: Client, echo: Agent) -> None:
    task = make_task(echo, [Part(url="http://127.0.0.1:1/secret")])
    assert staff.get(f"/tasks/{task.id}/files/m1/0").status_code == 404


def test_a_file_of_another_task_is_out_of_reach(staff: Client, echo: Agent) -> None:
    first, second = make_task(echo, [Part(raw="AA==")]), make_task(echo)
    add_artifact(first, "a", [Part(raw="AA==")])
    assert staff.get(f"/tasks/{second.id}/files/e1/0").status_code == 404


def test_images_that_are_too_large_or_of_odd_types_are_not_shown(
    staff: Client, echo: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.pages.parts.IMAGE_LIMIT", 10)
    task = make_task(
        echo, [Part(raw=b64(b"x" * 11), media_type="image/png"), Part(raw=b64(b"x"), media_type="image/x-tga")]
    )
    page = Page(staff.get(f"/tasks/{task.id}/"))
    assert len(page.find("img")) == 1  # the one in the bar
    assert page.texts("file") == [
        "Unnamed file image/png, 11 bytes Download",
        "Unnamed file image/x-tga, 1 byte Download",
    ]
