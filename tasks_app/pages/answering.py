"""What people do with a task on its page: approve, refuse, give input, cancel. Each act is in the audit log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods

from protocol.errors import A2AError, InvalidParamsError, TaskNotFoundError
from tasks_app.host import Host
from tasks_app.models import AuditEntry, Task
from tasks_app.operations.answering import answer_task, cancel_any_task
from tasks_app.pages.access import staff_page
from tasks_app.pages.answer_form import AnswerForm
from tasks_app.pages.task_page import show_task
from tasks_app.process import get_host
from tasks_app.record import TaskRecord

logger = logging.getLogger(__name__)

PERMISSION = "tasks_app.answer_task"
_under_way: set[asyncio.Task[TaskRecord]] = set()

Act = Callable[[Host], Awaitable[TaskRecord]]


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def answer(request: HttpRequest, task_id: str) -> HttpResponseBase:
    """Answer a waiting task; the page again, with what is wrong, if that cannot be done. GET leads to the page."""
    if request.method != "POST":
        return redirect("task", task_id)
    task = _task(request, task_id)
    form = AnswerForm.of(request)
    form.check()
    if form.errors:
        return show_task(request, task, form)
    action, detail = form.audit()
    by = request.user.get_username()
    entry = AuditEntry(actor=by, action=action, agent=task.agent.slug, task_id=task.id, detail=detail)
    try:
        _perform(lambda host: answer_task(host, task.id, int(form.attempt), by, form.answer), entry)
    except InvalidParamsError as error:
        form.errors |= {v.field: f"It {v.description}." for v in error.violations}
        return show_task(request, task, form)
    except TaskNotFoundError:
        raise Http404 from None
    except A2AError as error:
        messages.error(request, f"Nothing was sent. {error.message}")
        return redirect("task", task.id)
    messages.success(request, {"task.input": "Sent.", "task.approve": "Approved.", "task.refuse": "Refused."}[action])
    return redirect("task", task.id)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def cancel(request: HttpRequest, task_id: str) -> HttpResponseBase:
    """Cancel a task that has not ended. GET leads to the page."""
    if request.method != "POST":
        return redirect("task", task_id)
    task = _task(request, task_id)
    by = request.user.get_username()
    entry = AuditEntry(actor=by, action="task.cancel", agent=task.agent.slug, task_id=task.id, detail="Cancelled.")
    try:
        _perform(lambda host: cancel_any_task(host, task.id), entry)
    except TaskNotFoundError:
        raise Http404 from None
    except A2AError as error:
        messages.error(request, f"It was not cancelled. {error.message}")
    else:
        messages.success(request, "Cancelled.")
    return redirect("task", task.id)


def _task(request: HttpRequest, task_id: str) -> Task:
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    return get_object_or_404(Task.objects.select_related("agent"), pk=task_id)


def _perform(act: Act, entry: AuditEntry) -> None:
    """Do it on the event loop of the process, and note it, also if the browser hangs up meanwhile."""
    async_to_sync(_perform_on_loop)(act, entry)


async def _perform_on_loop(act: Act, entry: AuditEntry) -> None:
    work = asyncio.ensure_future(_perform_and_note(act, entry))
    _under_way.add(work)
    work.add_done_callback(_under_way.discard)
    await asyncio.shield(work)


async def _perform_and_note(act: Act, entry: AuditEntry) -> TaskRecord:
    record = await act(await get_host())
    # Not in the thread of the request, which waits for this.
    await asyncio.to_thread(_note, entry)
    return record


def _note(entry: AuditEntry) -> None:
    try:
        entry.save()
    except Exception:  # It is done, so who did it must not be lost.
        logger.exception("Audit: %s %s %s %s", entry.actor, entry.action, entry.task_id, entry.detail)
    finally:
        connection.close()
