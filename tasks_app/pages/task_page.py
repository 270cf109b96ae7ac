"""The page of one task, and the pieces that it loads when they are opened."""

from __future__ import annotations

from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Agent
from protocol.model import StreamResponse, Task
from protocol.states import TaskState
from tasks_app import models
from tasks_app.content.links import own_url
from tasks_app.content.restoring import Policy, restore
from tasks_app.pages import family, listing, rendering, states, story
from tasks_app.pages.access import staff_page
from tasks_app.pages.answer_form import AnswerForm
from tasks_app.pages.runs import runs
from tasks_app.pages.webhooks import webhooks
from tasks_app.tables.rows import EVENT_COLUMNS, event, full_record, full_tasks

COLOURED_LIMIT = 1024 * 1024  # bytes of raw JSON that are shown; more is offered as a download


@require_safe
@staff_page
def task_page(request: HttpRequest, task_id: str) -> HttpResponse:
    """Everything about one task. `?log=<seq>` shows the events before that one."""
    return show_task(request, get_object_or_404(models.Task.objects.select_related("agent"), pk=task_id))


def show_task(request: HttpRequest, task: models.Task, form: AnswerForm | None = None) -> HttpResponse:
    """The page; `form` is what somebody has typed to answer the task, with what is wrong."""
    before = request.GET.get("log", "")
    log, earlier = story.log(task, int(before) if before.isdecimal() and len(before) < 10 else None)
    artifacts, whole = story.artifacts(task)
    state = TaskState.from_number(task.state)
    context = {
        "task": task,
        "title": listing.summaries([task.id]).get(task.id, ""),
        "look": states.BY_NUMBER[task.state],
        "form": form,
        "children": family.children(task),
        "audit": family.audit(task),
        "running": not (state.terminal or state is TaskState.UNSPECIFIED),
        "steps": story.timeline(task),
        "bubbles": story.conversation(task),
        "most_messages": story.MOST_MESSAGES,
        "artifacts": artifacts,
        "artifacts_whole": whole,
        "runs": runs(task),
        "webhooks": webhooks(task),
        "log": log,
        "log_earlier": earlier,
        "log_before": before,
        "page": "tasks",
    }
    return render(request, "tasks/task.html", context)


@require_safe
@staff_page
def raw_task(request: HttpRequest, task_id: str) -> HttpResponse:
    """The raw JSON of the task, coloured, for the section of the page."""
    body = _protocol_json(task_id, by_url=True)
    html = rendering.json_code(body.decode()) if len(body) <= COLOURED_LIMIT else None
    return render(request, "tasks/_raw.html", {"html": html, "size": len(body), "task_id": task_id})


@require_safe
@staff_page
def task_json(_request: HttpRequest, task_id: str) -> HttpResponseBase:
    """The task as `GetTask` gives it (§3.1.3), byte for byte."""
    return HttpResponse(
        _protocol_json(task_id),
        content_type="application/json",
        headers={"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"},
    )


@require_safe
@staff_page
def raw_event(request: HttpRequest, task_id: str, seq: int) -> HttpResponse:
    """The JSON of one event, as a stream sends it (§3.2.3)."""
    rows = models.Event.objects.values_list("task__context_id", *EVENT_COLUMNS.split(", "))
    context_id, *row = get_object_or_404(rows, task_id=task_id, seq=seq)
    payload = event(tuple(row)).payload(task_id, context_id)
    payload = restore(StreamResponse, payload, Policy(by_url=True, base_url=own_url()))
    return render(request, "tasks/_json.html", {"html": rendering.json_code(payload.decode())})


def _protocol_json(task_id: str, by_url: bool = False) -> bytes:
    """The task with its files: as `GetTask` gives them, or as URLs in any case."""
    task = get_object_or_404(models.Task.objects.select_related("agent"), pk=task_id)
    with connection.cursor() as cursor:
        cursor.execute(f"{full_tasks()} WHERE t.id = %s", [task_id])
        row = cursor.fetchone()
    if row is None or task.state == TaskState.UNSPECIFIED.number:
        raise Http404("This exchange was answered with a message; there is no task.")
    policy = Policy.of(Agent.LargeParts.URL if by_url else task.agent.large_parts, own_url())
    return restore(Task, full_record(row).render(), policy)
