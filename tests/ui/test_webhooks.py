"""The webhooks on the page of a task."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.test import Client

from agents.models import Agent
from agents.secrets import encrypt
from protocol.states import TaskState
from tasks_app.models import PushConfig, Task
from tests.ui.support import START, Page, add_status, make_task


def add_webhook(task: Task, config_id: str, **values: Any) -> None:
    """A config with secrets, which has had everything unless `values` say otherwise."""
    PushConfig.objects.create(
        task=task,
        config_id=config_id,
        **{
            "url": "https://hooks.example.com/a",
            "token": encrypt("tok-en"),
            "scheme": "Bearer",
            "credentials": encrypt("cred-en"),
            "version": "1.0",
            "created_at": START,
            "cursor": 2,
            "last_seq": 2,
        }
        | values,
    )


def test_a_task_without_webhooks_does_not_speak_of_them(staff: Client, echo: Agent) -> None:
    page = Page(staff.get(f"/tasks/{make_task(echo).id}/"))
    assert page.text("webhooks") == ""


def test_the_webhooks_of_a_task_and_how_far_they_are(staff: Client, echo: Agent) -> None:
    task = make_task(echo)
    add_status(task, TaskState.WORKING, 1)
    add_status(task, TaskState.COMPLETED, 2)
    add_webhook(make_task(echo), "of-another-task")
    add_webhook(task, "a")
    retry = {"cursor": 1, "due_at": START + timedelta(seconds=90), "attempts": 3, "last_error": "HTTP 503"}
    add_webhook(task, "b<i>", url="http://h.test/?x=<script>", **retry)
    add_webhook(task, "c", cursor=0, disabled_reason="It said 410.", last_error="HTTP 410")
    response = staff.get(f"/tasks/{task.id}/")
    assert Page(response).text("webhooks") == (
        "Webhooks 3 Sent Next try Id Address "
        "2/2 a https://hooks.example.com/a "
        "1/2 12:01:30.000 b<i> http://h.test/?x=<script> HTTP 503 (3 attempts) "
        "0/2 c https://hooks.example.com/a It said 410."
    )
    html = response.content.decode()
    assert "<script>" not in html.partition('id="webhooks"')[2].partition("</section>")[0]
    for secret in ("tok-en", "cred-en", "gAAAA", "Bearer"):
        assert secret not in html
