"""The ASGI application: A2A paths go straight to their bindings, everything else to Django."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

from a2a_host.bindings.cards import serve_keys
from a2a_host.bindings.files import serve_file
from a2a_host.bindings.health import serve_health
from a2a_host.bindings.root import ROOT_PATHS, RootAgent
from a2a_host.bindings.router import serve_agent
from a2a_host.bindings.shared import serve_shared
from a2a_host.bindings.task_base import serve_task_base
from a2a_host.bindings.websocket import refuse_websocket, serve_websocket
from a2a_host.lifespan import serve_lifespan
from tasks_app.pages.live import live_tasks

_AGENTS = "/agents/"
route: Any = re_path  # its types know of Django's views only

_http: Any = URLRouter(
    [
        # A decoded path may hold line breaks; nothing below /agents may reach Django and its HTML.
        route(r"(?s)^agents(?:/(?P<slug>[^/]*)(?P<rest>/.*)?)?$", serve_agent),
        route(r"(?s)^a2a(?P<rest>/.*)?$", serve_shared),
        route(r"(?s)^a2a-tasks/(?P<slug>[^/]*)(?P<rest>/.*)?$", serve_task_base),
        route(r"(?s)^files/(?P<id>.+)$", serve_file),
        route(r"^healthz$", serve_health),
        route(r"^live/tasks$", live_tasks),
        route(r"^\.well-known/jwks\.json$", serve_keys),
        route(ROOT_PATHS, RootAgent(django_application)),
        route(r"", django_application),
    ]
)


def serve_http(scope: Any, receive: Any, send: Any) -> Awaitable[None]:
    """ASGI application of all HTTP paths. Agents have a short cut: the router takes its time for each request."""
    path: str = scope["path"]
    if not path.startswith(_AGENTS) or scope.get("root_path"):
        routed: Awaitable[None] = _http(scope, receive, send)
        return routed
    slug, _, rest = path[len(_AGENTS) :].partition("/")
    scope["url_route"] = {"args": (), "kwargs": {"slug": slug, "rest": f"/{rest}"}}
    return serve_agent(scope, receive, send)


application: Any = ProtocolTypeRouter(
    {
        "http": serve_http,
        "websocket": URLRouter(
            [
                route(r"^agents/(?P<slug>[^/]*)/ws$", serve_websocket),
                route(r"", refuse_websocket),
            ]
        ),
        "lifespan": serve_lifespan,
    }
)
