"""Which view answers a path below an agent's URL, with or without a tenant before it.

Segments are split before they are decoded, so an id may hold any character, and a verb may be spelled `%3Acancel`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from a2a_host.bindings.rest import views
from protocol.errors import RouteNotFoundError


@dataclass(frozen=True, slots=True)
class Route:
    """A view, its path arguments, and the tenant that the path names; "" for none."""

    view: Any
    arguments: dict[str, str]
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Routes:
    """The views of one version: those of `fixed` paths, of a task, of the verbs behind its id, and of its push configs.

    `task_id` and `config_id` are what the fields of the ids are called in the requests of push configs. `base` is what
    stands before all paths.
    """

    fixed: dict[str, Any]
    task: Any
    task_verbs: dict[str, Any]
    push_configs: Any
    push_config: Any
    task_id: str
    config_id: str
    base: str = ""

    def templates(self) -> dict[str, Any]:
        """The view of every path, by its template; a name in braces is a field of the request."""
        fixed = {f"{self.base}/{path}": view for path, view in self.fixed.items()}
        task = f"{self.base}/tasks/{{id}}"
        verbs = {f"{task}:{verb}": view for verb, view in self.task_verbs.items()}
        configs = f"{self.base}/tasks/{{{self.task_id}}}/pushNotificationConfigs"
        config = f"{configs}/{{{self.config_id}}}"
        return fixed | {task: self.task} | verbs | {configs: self.push_configs, config: self.push_config}

    def find(self, segments: tuple[str, ...]) -> Route | None:
        """The route of what follows `base`; None if there is none."""
        match segments:
            case (path,) if path in self.fixed:
                return Route(self.fixed[path], {})
            case ("tasks", task) if task:
                return self._task_route(task)
            case ("tasks", task, "pushNotificationConfigs") if task:
                return Route(self.push_configs, {"id": task})
            case ("tasks", task, "pushNotificationConfigs", config) if task and config:
                return Route(self.push_config, {"id": task, "config_id": config})
        return None

    def _task_route(self, segment: str) -> Route:
        task, colon, verb = segment.rpartition(":")
        if colon and task and verb in self.task_verbs:
            return Route(self.task_verbs[verb], {"id": task})
        return Route(self.task, {"id": segment})


ROUTES = Routes(
    fixed={
        "message:send": views.SendMessageView.as_view(),
        "message:stream": views.StreamMessageView.as_view(),
        "tasks": views.TaskListView.as_view(),
        "extendedAgentCard": views.ExtendedCardView.as_view(),
    },
    task=views.TaskView.as_view(),
    task_verbs={"cancel": views.CancelTaskView.as_view(), "subscribe": views.SubscribeView.as_view()},
    push_configs=views.PushConfigsView.as_view(),
    push_config=views.PushConfigView.as_view(),
    task_id="taskId",
    config_id="id",
)


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
    routes = [found] if (found := ROUTES.find(segments)) else []
    if segments[0] and (found := ROUTES.find(segments[1:])):
        routes.append(replace(found, tenant=segments[0]))
    if not routes:
        raise RouteNotFoundError("/" + "/".join(segments)[:200])
    return routes[-1 if tenant_first else 0]
