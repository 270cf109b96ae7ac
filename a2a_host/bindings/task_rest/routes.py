"""Which requests are in the task REST dialect, and which view answers them."""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.rest.routes import Route, split_path
from a2a_host.bindings.service_parameters import ServiceParameters, read_service_parameters
from a2a_host.bindings.task_rest import views
from a2a_host.bindings.task_rest.stream import DIALECT
from agents.registry import AgentEntry
from protocol.errors import UnauthenticatedError
from tasks_app.execution.host import Host

_TASKS = views.TasksView.as_view()
_TASK = views.TaskView.as_view()
_BELOW_TASK: dict[str, Any] = {
    "cancel": views.CancelView.as_view(),
    "artifacts": views.ArtifactsView.as_view(),
    "messages": views.MessagesView.as_view(),
    "stream": views.StreamView.as_view(),
}
_ID_LENGTH = 36
_CREATED_HERE = """SELECT 1 FROM tasks_app_task WHERE id = %s AND agent_id = %s AND owner = %s AND dialect = %s"""


def find_route(segments: tuple[str, ...]) -> Route | None:
    """The route of a path below the dialect's base; None if there is none."""
    match segments:
        case ("tasks",):
            return Route(_TASKS, {})
        case ("tasks", task) if task:
            return Route(_TASK, {"id": task})
        case ("tasks", task, name) if task and name in _BELOW_TASK:
            return Route(_BELOW_TASK[name], {"id": task})
    return None


async def route_beside_1_0(host: Host, entry: AgentEntry, scope: Any) -> Route | None:
    """The route of a request at the agent's URL, where HTTP+JSON of 1.0 answers too; None for what is 1.0.

    Two paths are of both. A request that names a version, or application/a2a+json, is 1.0. Otherwise `POST /tasks`,
    which 1.0 does not have, is of the dialect, and a task is read as it was created.
    """
    segments = split_path(scope["raw_path"], base=2)
    route = find_route(segments) if segments[0] == "tasks" else None
    if route is None or len(segments) > 2:
        return route
    parameters = read_service_parameters(scope)
    if parameters.version or _names_a2a_json(scope):
        return None
    if len(segments) == 1:
        return route if scope["method"] == "POST" else None
    if scope["method"] == "GET" and await _was_created_here(host, entry, parameters, segments[1]):
        return route
    return None


def _names_a2a_json(scope: Any) -> bool:
    return any(
        name in (b"accept", b"content-type") and b"a2a+json" in value.lower() for name, value in scope["headers"]
    )


async def _was_created_here(host: Host, entry: AgentEntry, parameters: ServiceParameters, task_id: str) -> bool:
    """Whether a task was created in the dialect, as far as its caller may know of it."""
    if len(task_id) != _ID_LENGTH or "\0" in task_id:
        return False
    try:
        call = parameters.call(host, entry, "HTTP+JSON")
    except UnauthenticatedError:
        return False
    return bool(await host.store.query(_CREATED_HERE, [task_id, entry.id, call.caller.owner, DIALECT]))
