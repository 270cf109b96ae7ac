"""The admin of agents."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import PROTECT, ManyToOneRel, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.admin.addresses import card, copy_button, copyable, endpoint
from agents.admin.inlines import ExtensionInline, NoteInline, SkillInline
from agents.admin.panels import PANELS
from agents.admin.usage import usage_table
from agents.admin_base import ModelAdmin, PlainFields, action, display
from agents.models import Agent
from agents.registration import clone_agent, set_enabled


@admin.register(Agent)
class AgentAdmin(PlainFields, ModelAdmin[Agent]):
    """Agents: create, edit, enable, disable, clone. A change is live in every process within a second."""

    list_display = ("slug", "name", "kind", "execution", "enabled", "open", "addresses", "updated_at")
    list_editable = ("enabled",)
    list_filter = ("enabled", "open", "versions", "kind", "execution", "streaming")
    search_fields = ("slug", "name", "description", "executor", "skills__name", "skills__description")
    inlines = (SkillInline, ExtensionInline, NoteInline)
    actions = ("enable", "disable", "clone")
    readonly_fields = ("endpoint_url", "card_url", "usage", "retention", "created_at", "updated_at")
    save_on_top = False
    warn_unsaved_form = True
    fieldsets = (
        (None, {"fields": (("slug", "enabled"), ("name", "version"), "description")}),
        ("What runs", {"fields": ("kind", "executor", "execution")}),
        ("Protocol", {"fields": ("versions", "is_root", "extended_card", "sign_card")}),
        ("Who may call", {"fields": ("open", "shared_history", "idempotent_sends")}),
        (
            "Abilities",
            {"fields": (("streaming", "push_notifications"), ("default_input_modes", "default_output_modes"))},
        ),
        ("Limits", {"fields": ("timeout_seconds", "cancel_grace_seconds", "max_request_bytes")}),
        ("Recovery", {"fields": ("deadline_seconds", "max_retries", "answer_within_seconds")}),
        (
            "What is kept",
            {
                "fields": (
                    ("keep_completed_days", "keep_failed_days"),
                    ("keep_canceled_days", "keep_rejected_days"),
                    "large_parts",
                    ("max_task_bytes", "max_stored_bytes"),
                )
            },
        ),
        (
            "Links",
            {"fields": ("documentation_url", "icon_url", ("provider_organization", "provider_url"))},
        ),
    )
    ADDRESSES = ("Addresses", {"fields": ("endpoint_url", "card_url", ("created_at", "updated_at"))})
    USAGE = ("Usage", {"fields": ("usage",)})
    RETENTION = ("What goes", {"fields": ("retention",)})

    class Media:
        css = {"all": ("agents/admin.css",)}
        js = ("agents/copy.js",)

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        """An agent that exists also has addresses, and was called or not."""
        fieldsets = super().get_fieldsets(request, obj)
        return [fieldsets[0], self.ADDRESSES, *fieldsets[1:], self.RETENTION, self.USAGE] if obj else fieldsets

    def get_actions(self, request: HttpRequest) -> Any:
        """Agents are deleted one by one, after a look at what hangs on them."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def has_delete_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Not for an agent with tasks: they may be millions, and the confirmation page would list them all."""
        return super().has_delete_permission(request, obj) and not (obj and is_referenced(obj))

    @display(description="Addresses")
    def addresses(self, agent: Agent) -> SafeString:
        """Buttons that copy the URLs."""
        return format_html("{} {}", copy_button("Endpoint", endpoint(agent)), copy_button("Card", card(agent)))

    @display(description="Endpoint")
    def endpoint_url(self, agent: Agent) -> SafeString:
        """Where JSON-RPC and HTTP+JSON calls go."""
        return copyable(endpoint(agent))

    @display(description="Agent card")
    def card_url(self, agent: Agent) -> SafeString:
        """Where clients discover the agent (§8.2)."""
        return copyable(card(agent))

    @display(description="Calls")
    def usage(self, agent: Agent) -> SafeString:
        """How often the agent is called, in which versions and bindings."""
        return usage_table(agent)

    @display(description="Tasks kept no longer")
    def retention(self, agent: Agent) -> SafeString:
        """What the stored limits let go now."""
        return PANELS["retention"](agent)

    @action(description="Enable selected agents", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Callers see the agents again."""
        self._switch(request, queryset, enabled=True)

    @action(description="Disable selected agents", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """The agents look absent to callers."""
        self._switch(request, queryset, enabled=False)

    @action(description="Clone selected agents", permissions=["add"])
    def clone(self, request: HttpRequest, queryset: QuerySet[Agent]) -> HttpResponse | None:
        """Disabled copies, to be edited; a single one is opened."""
        with transaction.atomic():  # with who did it, or not at all
            copies = [clone_agent(agent) for agent in queryset]
            for copy in copies:
                self.log_addition(request, copy, "Cloned.")
        slugs = ", ".join(copy.slug for copy in copies)
        self.message_user(request, f"Made {slugs}, disabled until you enable them.", messages.SUCCESS)
        return redirect("admin:agents_agent_change", copies[0].pk) if len(copies) == 1 else None

    def _switch(self, request: HttpRequest, queryset: QuerySet[Agent], *, enabled: bool) -> None:
        word = "Enabled" if enabled else "Disabled"
        with transaction.atomic():  # with who did it, or not at all
            changed = [agent for agent in queryset if set_enabled(agent, enabled)]
            for agent in changed:
                self.log_change(request, agent, f"{word}.")
        self.message_user(request, f"{word} {len(changed)} of {len(queryset)} agents.", messages.SUCCESS)


def is_referenced(agent: Agent) -> bool:
    """Whether rows of other apps forbid that the agent is deleted."""
    relations = [relation for relation in agent._meta.related_objects if isinstance(relation, ManyToOneRel)]
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: agent}).exists()
        for relation in relations
        if relation.on_delete is PROTECT
    )
