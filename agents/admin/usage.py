"""The admin of the usage counters: read, filtered by version to learn when an old one can be switched off."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Count, Max, Min, Sum
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from agents.admin_base import ModelAdmin
from agents.models import Agent, Usage

LIST = "admin:agents_usage_changelist"


@admin.register(Usage)
class UsageAdmin(ModelAdmin[Usage]):
    """Counters by agent, binding, version, operation and caller. They may be deleted, to count from nothing again."""

    list_display = ("agent", "version", "binding", "operation", "caller", "calls", "errors", "first_seen", "last_seen")
    list_display_links = None
    list_filter = ("version", "binding", "operation", "agent")
    list_select_related = ("agent",)
    search_fields = ("caller", "operation", "agent__slug")
    date_hierarchy = "last_seen"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only calls make counters."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Usage | None = None) -> bool:
        """Nobody edits them."""
        return False


def usage_table(agent: Agent) -> SafeString:
    """What is called of an agent in each version and binding; each row leads to its operations and callers."""
    groups = (
        Usage.objects.filter(agent=agent)
        .order_by("-version", "binding")
        .values("version", "binding")
        .annotate(
            all_calls=Sum("calls"),
            all_errors=Sum("errors"),
            callers=Count("caller", distinct=True),
            first=Min("first_seen"),
            last=Max("last_seen"),
        )
    )
    rows = [{**group, "url": _list_url(agent, group["version"], group["binding"])} for group in groups]
    return render_to_string("admin/agents/agent/usage.html", {"rows": rows})


def _list_url(agent: Agent, version: str, binding: str) -> str:
    query = {"agent__id__exact": agent.pk, "version__exact": version, "binding__exact": binding}
    return f"{reverse(LIST)}?{urlencode(query)}"
