"""The agent at the host root (§8.2): its paths without /agents/<slug>, beside the pages that live there too.

`/` is the agent's for POST and OPTIONS, and a page for everything else. `/tasks` and what is below it without a slash
at its end are the agent's, except for readers of HTML (GET with `text/html` in Accept), whom Django leads to the pages,
and what only those have. All other paths of A2A are no pages at all. Without an agent at the root nothing is different
from a host that knows no such thing.
"""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.router import serve_agent
from tasks_app.processes.process import get_host

ROOT_PATHS = (
    r"(?s)^(?:"
    r"|\.well-known/agent(?:-card)?\.json"
    r"|message:(?:send|stream)"
    r"|extendedAgentCard"
    r"|v1/.+"
    r"|tasks(?!/[^/]+/(?:raw|task\.json|events/[0-9]+|files/.+)$)(?:/.*[^/])?"
    r")$"
)
"""What the agent's own paths look like there, for a URL router."""


class RootAgent:
    """ASGI application of `ROOT_PATHS`; `pages` is the one for whatever is not for the agent."""

    def __init__(self, pages: Any) -> None:
        self._pages = pages

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the agent, or else the pages."""
        entry = None if is_for_pages(scope) else (await get_host()).registry.root
        if entry is None:
            await self._pages(scope, receive, send)
        else:
            await serve_agent(below_agent(entry.slug, scope), receive, send)


def is_for_pages(scope: Any) -> bool:
    """Whether a request of `ROOT_PATHS` is for people, or not for the agent by its method."""
    path, method = scope["path"], scope["method"]
    if path == "/":
        return method not in ("POST", "OPTIONS")
    if not path.startswith("/tasks") or method not in ("GET", "HEAD"):
        return False
    return any(name == b"accept" and b"text/html" in value.lower() for name, value in scope["headers"])


def below_agent(slug: str, scope: Any) -> dict[str, Any]:
    """The same request at the agent's own URL."""
    base = f"/agents/{slug}"
    return {
        **scope,
        "path": base + scope["path"],
        "raw_path": base.encode() + scope["raw_path"],
        "url_route": {"args": (), "kwargs": {"slug": slug, "rest": scope["path"]}},
    }
