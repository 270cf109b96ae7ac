"""Which requests are HTTP+JSON of 0.3, and which view answers them."""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.rest.routes import Route, Routes, split_path
from a2a_host.bindings.rest.v03 import views
from a2a_host.bindings.service_parameters import read_service_parameters

ROUTES = Routes(
    fixed={
        "message:send": views.SendMessageView.as_view(),
        "message:stream": views.StreamMessageView.as_view(),
        "tasks": views.TaskListView.as_view(),
        "card": views.CardView.as_view(),
    },
    task=views.TaskView.as_view(),
    task_verbs={"cancel": views.CancelTaskView.as_view(), "subscribe": views.SubscribeView.as_view()},
    push_configs=views.PushConfigsView.as_view(),
    push_config=views.PushConfigView.as_view(),
    task_id="id",
    config_id="pushNotificationConfigId",
    base="/v1",
)


def is_v03(scope: Any, base: int = 2) -> bool:
    """Whether a request is for a path of 0.3: below `v1`, which is a tenant to 1.0 alone."""
    if split_path(scope["raw_path"], base)[:1] != ("v1",):
        return False
    return not read_service_parameters(scope).version.strip().startswith("1.")


def route_of_v03(scope: Any, base: int = 2) -> Route | None:
    """The route of a request to a path of 0.3; None for any other."""
    return ROUTES.find(split_path(scope["raw_path"], base)[1:]) if is_v03(scope, base) else None
