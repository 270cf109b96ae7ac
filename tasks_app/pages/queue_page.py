"""The page of the queue: what waits and runs by agent, the processes, and what is about to be FAILED."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from tasks_app.execution.backlog import read_backlog
from tasks_app.pages.access import staff_page


@require_safe
@staff_page
def queue_page(request: HttpRequest) -> HttpResponse:
    """The queue as it is now."""
    return render(request, "queue/queue.html", {"backlog": read_backlog(), "page": "queue"})
