"""One function per A2A operation (§3.1), for every binding, page and command. They speak in protocol terms only."""

from __future__ import annotations

from tasks_app.operations.call import Call
from tasks_app.operations.listing import TaskPage, list_tasks
from tasks_app.operations.sending import Answer, send_message
from tasks_app.operations.streaming import Frame, TaskStream, stream_message, subscribe_to_task
from tasks_app.operations.tasks import cancel_task, get_task

__all__ = [
    "Answer",
    "Call",
    "Frame",
    "TaskPage",
    "TaskStream",
    "cancel_task",
    "get_task",
    "list_tasks",
    "send_message",
    "stream_message",
    "subscribe_to_task",
]
