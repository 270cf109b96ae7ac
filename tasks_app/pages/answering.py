"""What people do with a task on its page: approve, refuse, give input, cancel. Each act is in the audit log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods

from protocol.errors import (
    A2AError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnavailableError,
)
from tasks_app.execution.host import Host
from tasks_app.models import AuditEntry, Task
from tasks_app.operations.answering import answer_task, cancel_any_task
from tasks_app.pages.access import staff_page
from tasks_app.pages.answer_form import AnswerForm
from tasks_app.pages.task_page import show_task
from tasks_app.processes.process import get_host
from tasks_app.tables.record import TaskRecord

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
    by = request.user.get_username()
    try:
        _perform(lambda host: answer_task(host, task.id, int(form.attempt), by, form.answer))
    except InvalidParamsError as error:
        form.errors |= {v.field: f"It {v.description}." for v in error.violations}
        return show_task(request, task, form)
    except TaskNotFoundError:
        raise Http404 from None
    except A2AError as error:
        messages.error(request, f"Nothing was sent. {error.message}")
        return redirect("task", task.id)
    messages.success(request, {"input": "Sent.", "approve": "Approved.", "refuse": "Refused."}[form.verdict])
    return redirect("task", task.id)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def cancel(request: HttpRequest, task_id: str) -> HttpResponseBase:
    """Cancel a task that has not ended. GET leads to the page.

    Whichever process runs the task writes its end, so the audit log first says what was asked for, and then what came
    of it: nothing is cancelled without a line, whoever dies when.
    """
    if request.method != "POST":
        return redirect("task", task_id)
    task = _task(request, task_id)
    entry = AuditEntry.objects.create(
        actor=request.user.get_username(),
        action="task.cancel",
        agent=task.agent.slug,
        task_id=task.id,
        detail="Asked to cancel it.",
    )
    try:
        _perform(lambda host: _cancel(host, entry))
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


def _perform(act: Act) -> None:
    """Do it on the event loop of the process, to its end, also if the browser hangs up meanwhile."""
    async_to_sync(_perform_on_loop)(act)


async def _perform_on_loop(act: Act) -> None:
    work = asyncio.ensure_future(_perform_with_host(act))
    _under_way.add(work)
    work.add_done_callback(_under_way.discard)
    await asyncio.shield(work)


async def _perform_with_host(act: Act) -> TaskRecord:
    return await act(await get_host())


async def _cancel(host: Host, entry: AuditEntry) -> TaskRecord:
    try:
        record = await cancel_any_task(host, entry.task_id)
    except (TaskNotCancelableError, TaskNotFoundError):
        await _complete(entry, "Not cancelled: it had ended.")
        raise
    except A2AError as error:
        reason = "the database was away" if isinstance(error, UnavailableError) else "something went wrong in the host"
        await _complete(entry, f"Could not be cancelled: {reason}.")
        raise
    await _complete(entry, "Cancelled.")
    return record


async def _complete(entry: AuditEntry, detail: str) -> None:
    # Not in the thread of the request, which waits for this.
    await asyncio.to_thread(_save, entry, detail)


def _save(entry: AuditEntry, detail: str) -> None:
    entry.detail = detail
    try:
        entry.save(update_fields=["detail"])
    except DatabaseError as error:  # Who asked for it is in the log, and the task's page tells what came of it.
        logger.warning("Audit: %s stays as asked for: %s", entry, type(error).__name__)
    finally:
        connection.close()
