"""Which requests are HTTP+JSON of 0.3, and which view answers them."""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.rest.routes import Route, split_path
from a2a_host.bindings.rest.v03 import views
from a2a_host.bindings.service_parameters import read_service_parameters

_FIXED: dict[tuple[str, ...], Any] = {
    ("message:send",): views.SendMessageView.as_view(),
    ("message:stream",): views.StreamMessageView.as_view(),
    ("tasks",): views.TaskListView.as_view(),
    ("card",): views.CardView.as_view(),
}
_TASK = views.TaskView.as_view()
_TASK_VERBS: dict[str, Any] = {
    "cancel": views.CancelTaskView.as_view(),
    "subscribe": views.SubscribeView.as_view(),
}
_PUSH_CONFIGS = views.PushConfigsView.as_view()
_PUSH_CONFIG = views.PushConfigView.as_view()


def templates() -> dict[str, Any]:
    """The view of every path below an agent's URL, by its template; a name in braces is a parameter of the method."""
    fixed = {f"/v1/{'/'.join(segments)}": view for segments, view in _FIXED.items()}
    verbs = {f"/v1/tasks/{{id}}:{verb}": view for verb, view in _TASK_VERBS.items()}
    configs = "/v1/tasks/{id}/pushNotificationConfigs"
    config = f"{configs}/{{pushNotificationConfigId}}"
    return fixed | {"/v1/tasks/{id}": _TASK} | verbs | {configs: _PUSH_CONFIGS, config: _PUSH_CONFIG}


def is_v03(scope: Any, base: int = 2) -> bool:
    """Whether a request is for a path of 0.3: below `v1`, which is a tenant to 1.0 alone."""
    if split_path(scope["raw_path"], base)[:1] != ("v1",):
        return False
    return not read_service_parameters(scope).version.strip().startswith("1.")


def route_of_v03(scope: Any, base: int = 2) -> Route | None:
    """The route of a request to a path of 0.3; None for any other."""
    return _find_route(split_path(scope["raw_path"], base)[1:]) if is_v03(scope, base) else None


def _find_route(segments: tuple[str, ...]) -> Route | None:
    view = _FIXED.get(segments)
    if view is not None:
        return Route(view, {})
    match segments:
        case ("tasks", task) if task:
            return _task_route(task)
        case ("tasks", task, "pushNotificationConfigs") if task:
            return Route(_PUSH_CONFIGS, {"id": task})
        case ("tasks", task, "pushNotificationConfigs", config) if task and config:
            return Route(_PUSH_CONFIG, {"id": task, "config_id": config})
    return None


def _task_route(segment: str) -> Route:
    task, colon, verb = segment.rpartition(":")
    if colon and task and verb in _TASK_VERBS:
        return Route(_TASK_VERBS[verb], {"id": task})
    return Route(_TASK, {"id": segment})
