"""Which view answers a path below an agent's URL, with or without a tenant before it.

Segments are split before they are decoded, so an id may hold any character, and a verb may be spelled `%3Acancel`.
"""

from __future__ import annotations

from dataclasses import dataclass
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


def templates() -> dict[str, Any]:
    """The view of every path below an agent's URL, by its template; a name in braces is a field of the request."""
    fixed = {f"/{'/'.join(segments)}": view for segments, view in _FIXED.items()}
    verbs = {f"/tasks/{{id}}:{verb}": view for verb, view in _TASK_VERBS.items()}
    configs = "/tasks/{taskId}/pushNotificationConfigs"
    return fixed | {"/tasks/{id}": _TASK} | verbs | {configs: _PUSH_CONFIGS, f"{configs}/{{id}}": _PUSH_CONFIG}


@dataclass(frozen=True, slots=True)
class Route:
    """A view, its path arguments, and the tenant that the path names; "" for none."""

    view: Any
    arguments: dict[str, str]
    tenant: str = ""


def split_path(raw_path: bytes, base: int) -> tuple[str, ...]:
    """The decoded segments of an encoded path, without the first `base` ones: 2 of `/agents/<slug>/…`.

    No route has those of a path with an encoded slash among the first ones: no two readers would agree on it.
    """
    segments = raw_path.partition(b"?")[0].decode("ascii", "replace").split("/")
    if any("%2f" in segment.lower() for segment in segments[: base + 1]):
        return ("",)
    return tuple(unquote(segment) for segment in segments[base + 1 :])


def find_route(segments: tuple[str, ...], tenant_first: bool = False) -> Route:
    """The route of a path, in either of its forms (`/tasks`, `/{tenant}/tasks`). Raises RouteNotFoundError.

    `tenant_first` decides about the few paths that are both, such as `/tasks/tasks`.
    """
    routes = [Route(*found)] if (found := _find_view(segments)) else []
    if segments[0] and (found := _find_view(segments[1:])):
        routes.append(Route(*found, tenant=segments[0]))
    if not routes:
        raise RouteNotFoundError("/" + "/".join(segments)[:200])
    return routes[-1 if tenant_first else 0]


def _find_view(segments: tuple[str, ...]) -> tuple[Any, dict[str, str]] | None:
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
    return None


def _task_view(segment: str) -> tuple[Any, dict[str, str]]:
    task, colon, verb = segment.rpartition(":")
    if colon and task and verb in _TASK_VERBS:
        return _TASK_VERBS[verb], {"id": task}
    return _TASK, {"id": segment}
