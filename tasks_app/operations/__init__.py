"""One function per A2A operation (§3.1), for every binding, page and command. They speak in protocol terms only."""

from __future__ import annotations

from tasks_app.operations.call import Call
from tasks_app.operations.contents import rendered, with_contents
from tasks_app.operations.listing import TaskPage, list_tasks
from tasks_app.operations.push_configs import (
    ConfigPage,
    create_push_config,
    delete_push_config,
    get_push_config,
    list_push_configs,
)
from tasks_app.operations.sending import SendResult, send_message, start_task
from tasks_app.operations.streaming import (
    Frame,
    TaskStream,
    resubscribe_to_task,
    stream_message,
    subscribe_to_task,
)
from tasks_app.operations.tasks import cancel_task, get_task

__all__ = [
    "Call",
    "ConfigPage",
    "Frame",
    "SendResult",
    "TaskPage",
    "TaskStream",
    "cancel_task",
    "create_push_config",
    "delete_push_config",
    "get_push_config",
    "get_task",
    "list_push_configs",
    "list_tasks",
    "rendered",
    "resubscribe_to_task",
    "send_message",
    "start_task",
    "stream_message",
    "subscribe_to_task",
    "with_contents",
]
