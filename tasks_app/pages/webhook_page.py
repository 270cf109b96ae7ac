"""The page of one webhook: its health, its ledger, and what people may do to it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from tasks_app.models import Delivery, PushConfig, Task
from tasks_app.pages import health
from tasks_app.pages.access import staff_page
from tasks_app.push import acts
from tasks_app.push.acts import Act, ActError
from tasks_app.push.signatures import signs

LEDGER_PAGE = 50
PERMISSION = "tasks_app.operate_webhook"

_ACTS: dict[str, tuple[Callable[[Act], None], str]] = {
    "pause": (acts.pause, "Paused. Nothing is sent until somebody resumes it."),
    "resume": (acts.resume, "Resumed."),
    "enable": (acts.enable, "Enabled. What waits is being sent."),
    "retry": (acts.retry_now, "The next attempt is being made."),
    "test": (acts.send_test, "A test is being sent. It will be in the ledger in a moment."),
}
_ACTS_WITH_EVENT: dict[str, tuple[Callable[[Act, int], None], str]] = {
    "redeliver": (acts.redeliver, "The event is being sent again."),
    "redeliver-from": (acts.redeliver_from, "The events are being sent again, in order."),
}


@require_safe
@staff_page
def webhook_page(request: HttpRequest, task_id: str) -> HttpResponse:
    """The webhook `?id=` of a task, also a deleted one that has a ledger. `?before=` is a line of the ledger."""
    task = get_object_or_404(Task.objects.select_related("agent"), pk=task_id)
    config_id = request.GET.get("id", "").replace("\x00", "")
    config = PushConfig.objects.filter(task=task, config_id=config_id).defer("token").first()
    before = request.GET.get("before", "")
    lines = _ledger(task_id, config_id, int(before) if before.isdecimal() and len(before) < 19 else None)
    if config is None and not lines:
        raise Http404("There is no such webhook.")
    if config is not None:
        config.task = task
    context = {
        "task": task,
        "config_id": config_id,
        "config": config,
        "health": health.health_of(config) if config else None,
        "authentication": _authentication(config) if config else "",
        "waiting": max(0, task.last_seq - config.cursor) if config else 0,
        "lines": lines[:LEDGER_PAGE],
        "older": _address(task_id, config_id, lines[LEDGER_PAGE - 1].id) if len(lines) > LEDGER_PAGE else "",
        "newest": _address(task_id, config_id) if before else "",
        "page": "webhooks",
    }
    return render(request, "webhooks/webhook.html", context)


@require_POST
@staff_page
def act(request: HttpRequest, task_id: str) -> HttpResponseBase:
    """Do `act` of the form to the webhook `id`, with an event `seq` where it needs one, and show the webhook."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    name, config_id = request.POST.get("act", ""), request.POST.get("id", "").replace("\x00", "")
    this = Act(task_id, config_id, request.user.get_username())
    seq = request.POST.get("seq", "")
    try:
        if name in _ACTS:
            work, done = _ACTS[name]
            work(this)
        elif name in _ACTS_WITH_EVENT:
            work_on_event, done = _ACTS_WITH_EVENT[name]
            work_on_event(this, int(seq) if seq.isdecimal() and len(seq) < 10 else 0)
        else:
            raise Http404("There is nothing of this name to do.")
        messages.success(request, done)
    except ActError as error:
        messages.error(request, str(error))
    return redirect(_address(task_id, config_id))


def _ledger(task_id: str, config_id: str, before: int | None) -> list[Delivery]:
    """The newest lines before one, one more than a page holds."""
    lines = Delivery.objects.filter(task=task_id, config_id=config_id).order_by("-id")
    if before is not None:
        lines = lines.filter(id__lt=before)
    return list(lines[: LEDGER_PAGE + 1])


def _authentication(config: PushConfig) -> str:
    """How it knows the host, without what is secret."""
    way = signs(config.scheme, config.credentials)
    if way:
        return f"Signed ({way})"
    return config.scheme if config.scheme and config.credentials else "None"


def _address(task_id: str, config_id: str, before: int | None = None) -> str:
    query = {"id": config_id} | ({"before": str(before)} if before is not None else {})
    return f"{reverse('webhook', args=[task_id])}?{urlencode(query)}"
