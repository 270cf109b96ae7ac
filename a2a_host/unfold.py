"""Look and navigation of the admin (django-unfold)."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import lazy

_static = lazy(static, str)


def _link(title: str, icon: str, view: str, permission: str = "") -> dict[str, Any]:
    """A line of the navigation; with `permission`, for those who have it."""
    link: dict[str, Any] = {"title": title, "icon": icon, "link": reverse_lazy(view)}
    if permission:
        link["permission"] = lambda request: request.user.has_perm(permission)
    return link


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "a2a-host",
    "SITE_HEADER": "a2a-host",
    "SITE_SUBHEADER": "Agents and keys",
    "SITE_SYMBOL": "hub",
    "SITE_URL": reverse_lazy("home"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _static("favicon.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    # Indigo, as on the pages for staff.
    "COLORS": {
        "primary": {
            "50": "#eef2ff",
            "100": "#e0e7ff",
            "200": "#c7d2fe",
            "300": "#a5b4fc",
            "400": "#818cf8",
            "500": "#6366f1",
            "600": "#4f46e5",
            "700": "#4338ca",
            "800": "#3730a3",
            "900": "#312e81",
            "950": "#1e1b4b",
        }
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": [
            {
                "title": "Hosting",
                "items": [
                    _link("Agents", "smart_toy", "admin:agents_agent_changelist", "agents.view_agent"),
                    _link("API keys", "key", "admin:agents_apikey_changelist", "agents.view_apikey"),
                    _link("Signing keys", "signature", "admin:agents_signingkey_changelist", "agents.view_signingkey"),
                ],
            },
            {
                "title": "Work",
                "items": [
                    _link("Tasks", "checklist", "tasks"),
                    _link("Usage", "monitoring", "admin:agents_usage_changelist", "agents.view_usage"),
                    _link("Audit log", "history", "admin:tasks_app_auditentry_changelist", "tasks_app.view_auditentry"),
                    _link("How to call agents", "terminal", "catalog"),
                    _link(
                        "Erase data",
                        "delete_forever",
                        "admin:tasks_app_erasure_changelist",
                        "tasks_app.view_erasure",
                    ),
                ],
            },
            {
                "title": "People",
                "items": [
                    _link("Users", "person", "admin:auth_user_changelist", "auth.view_user"),
                    _link("Groups", "group", "admin:auth_group_changelist", "auth.view_group"),
                ],
            },
        ],
    },
}
