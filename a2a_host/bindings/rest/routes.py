"""Which view answers a path below an agent's URL.

Segments are split before they are decoded, so an id may hold any character, and a verb may be spelled `%3Acancel`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from a2a_host.bindings.rest import views
from protocol.errors import RouteNotFoundError

_FIXED: dict[tuple[str, ...], Any] = {
    ("message:send",): views.SendMessageView.as_view(),
    ("message:stream",): views.StreamMessageView.as_view(),
    ("tasks",): views.TaskListView.as_view(),
    ("extendedAgentCard",): views.ExtendedCardView.as_view(),
}
_TASK = views.TaskView.as_view()
_TASK_VERBS: dict[str, Any] = {
    "cancel": views.CancelTaskView.as_view(),
    "subscribe": views.SubscribeView.as_view(),
}
_PUSH_CONFIGS = views.PushConfigsView.as_view()
_PUSH_CONFIG = views.PushConfigView.as_view()


def find_view(raw_path: bytes) -> tuple[Any, dict[str, str]]:
    """(view, its path arguments) of the encoded path `/agents/<slug>/…`. Raises RouteNotFoundError."""
    segments = tuple(unquote(s) for s in raw_path.decode("ascii", "replace").split("/")[3:])
    view = _FIXED.get(segments)
    if view is not None:
        return view, {}
    match segments:
        case ("tasks", task) if task:
            return _task_view(task)
        case ("tasks", task, "pushNotificationConfigs") if task:
            return _PUSH_CONFIGS, {"id": task}
        case ("tasks", task, "pushNotificationConfigs", config) if task and config:
            return _PUSH_CONFIG, {"id": task, "config_id": config}
    raise RouteNotFoundError("/" + "/".join(segments)[:200])


def _task_view(segment: str) -> tuple[Any, dict[str, str]]:
    task, colon, verb = segment.rpartition(":")
    if colon and task and verb in _TASK_VERBS:
        return _TASK_VERBS[verb], {"id": task}
    return _TASK, {"id": segment}
