"""The admin of agents and API keys."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import PROTECT, ManyToOneRel, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.admin_base import InlineFormSet, ModelAdmin, PlainFields, StackedInline, action, display
from agents.models import Agent, ApiKey, Skill
from agents.registration import clone_agent, set_enabled


class SkillFormSet(InlineFormSet):
    """A card needs a skill (§4.4.1)."""

    default_error_messages = {
        **InlineFormSet.default_error_messages,
        "too_few_forms": "An agent needs at least one skill.",
    }


class SkillInline(PlainFields, StackedInline[Skill, Agent]):
    """The skills on the card."""

    model = Skill
    formset = SkillFormSet
    extra = 0
    min_num = 1
    fields = (("skill_id", "name"), "description", ("tags", "examples"), ("input_modes", "output_modes"), "position")
    ordering_field = "position"
    hide_ordering_field = True

    def get_formset(self, request: HttpRequest, obj: Agent | None = None, **kwargs: Any) -> Any:
        """The forms, of which one at least must be filled in."""
        return super().get_formset(request, obj, validate_min=True, **kwargs)


@admin.register(Agent)
class AgentAdmin(PlainFields, ModelAdmin[Agent]):
    """Agents: create, edit, enable, disable, clone. A change is live in every process within a second."""

    list_display = ("slug", "name", "kind", "execution", "enabled", "open", "addresses", "updated_at")
    list_editable = ("enabled",)
    list_filter = ("enabled", "open", "kind", "execution", "streaming")
    search_fields = ("slug", "name", "description", "executor", "skills__name", "skills__description")
    inlines = (SkillInline,)
    actions = ("enable", "disable", "clone")
    readonly_fields = ("endpoint_url", "card_url", "created_at", "updated_at")
    save_on_top = False
    warn_unsaved_form = True
    fieldsets = (
        (None, {"fields": (("slug", "enabled"), ("name", "version"), "description")}),
        ("What runs", {"fields": ("kind", "executor", "execution")}),
        ("Who may call", {"fields": ("open", "shared_history", "idempotent_sends")}),
        (
            "Abilities",
            {"fields": (("streaming", "push_notifications"), ("default_input_modes", "default_output_modes"))},
        ),
        ("Limits", {"fields": ("timeout_seconds", "cancel_grace_seconds", "max_request_bytes")}),
        (
            "Links",
            {"fields": ("documentation_url", "icon_url", ("provider_organization", "provider_url"))},
        ),
    )
    ADDRESSES = ("Addresses", {"fields": ("endpoint_url", "card_url", ("created_at", "updated_at"))})

    class Media:
        css = {"all": ("agents/admin.css",)}
        js = ("agents/copy.js",)

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        """An agent that exists also has addresses."""
        fieldsets = super().get_fieldsets(request, obj)
        return [fieldsets[0], self.ADDRESSES, *fieldsets[1:]] if obj else fieldsets

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
        copies = [clone_agent(agent) for agent in queryset]
        for copy in copies:
            self.log_addition(request, copy, "Cloned.")
        slugs = ", ".join(copy.slug for copy in copies)
        self.message_user(request, f"Made {slugs}, disabled until you enable them.", messages.SUCCESS)
        return redirect("admin:agents_agent_change", copies[0].pk) if len(copies) == 1 else None

    def _switch(self, request: HttpRequest, queryset: QuerySet[Agent], *, enabled: bool) -> None:
        word = "Enabled" if enabled else "Disabled"
        changed = [agent for agent in queryset if set_enabled(agent, enabled)]
        for agent in changed:
            self.log_change(request, agent, f"{word}.")
        self.message_user(request, f"{word} {len(changed)} of {len(queryset)} agents.", messages.SUCCESS)


def endpoint(agent: Agent) -> str:
    """URL of the agent; only its path while no public URL is set: the browser knows the rest."""
    return f"{settings.PUBLIC_URL}/agents/{agent.slug}"


def card(agent: Agent) -> str:
    """URL of the card, or its path."""
    return f"{endpoint(agent)}/.well-known/agent-card.json"


def copyable(url: str) -> SafeString:
    """A URL to read and a button to copy it. copy.js makes a path absolute."""
    return format_html('<code data-url="{}">{}</code> {}', url, url, copy_button("Copy", url))


def copy_button(label: str, text: str) -> SafeString:
    """A button that copies a URL or another text."""
    return format_html(
        '<button type="button" class="agents-copy" data-copy="{}" title="{}" aria-label="Copy {}">{}</button>',
        text,
        text,
        label.lower() if label != "Copy" else "this URL",
        label,
    )


def is_referenced(agent: Agent) -> bool:
    """Whether rows of other apps forbid that the agent is deleted."""
    relations = [relation for relation in agent._meta.related_objects if isinstance(relation, ManyToOneRel)]
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: agent}).exists()
        for relation in relations
        if relation.on_delete is PROTECT
    )


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin[ApiKey]):
    """API keys. A key is shown on the page that follows its making, and never again."""

    list_display = ("name", "owner", "prefix", "state", "expires_at", "last_used_at", "created_at")
    list_filter = ("enabled",)
    search_fields = ("name", "owner", "prefix")
    actions = ("enable", "disable")
    fields = ("name", "owner", "enabled", "expires_at", "prefix", "last_used_at", "created_at")
    readonly_fields = ("owner", "prefix", "last_used_at", "created_at")
    add_fieldsets = ((None, {"fields": ("name", "owner", "expires_at")}),)

    class Media:
        css = {"all": ("agents/admin.css",)}
        js = ("agents/copy.js",)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """A new key has less to say."""
        return self.fields if obj else self.add_fieldsets[0][1]["fields"]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """Whose key it is, is said once: tasks belong to the owner."""
        return self.readonly_fields if obj else ()

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> Any:
        """One button: what follows shows the key."""
        hidden = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, {**hidden, **(extra_context or {})})

    def save_model(self, request: HttpRequest, obj: ApiKey, form: ModelForm[ApiKey], change: bool) -> None:
        """A new row gets its key; only `response_add` reads it."""
        if not change:
            request.issued_key = obj.give()  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """The one page that shows the key. It is no redirect, so that the key is stored nowhere on the way."""
        context = {
            **self.admin_site.each_context(request),
            "title": f"API key {obj.name}",
            "opts": self.opts,
            "api_key": obj,
            "key": request.issued_key,  # type: ignore[attr-defined]
            "list_url": reverse("admin:agents_apikey_changelist"),
            "media": self.media,
        }
        response = TemplateResponse(request, "admin/agents/apikey/shown_once.html", context)
        add_never_cache_headers(response)
        return response

    @display(description="State", label={"usable": "success", "expired": "warning", "disabled": "danger"})
    def state(self, key: ApiKey) -> str:
        """Usable, expired or disabled."""
        if key.usable:
            return "usable"
        return "expired" if key.enabled else "disabled"

    @action(description="Enable selected API keys", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Serve calls with these keys again."""
        self._switch(request, queryset, enabled=True)

    @action(description="Disable selected API keys", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Refuse calls with these keys from now on."""
        self._switch(request, queryset, enabled=False)

    def _switch(self, request: HttpRequest, queryset: QuerySet[ApiKey], *, enabled: bool) -> None:
        word = "Enabled" if enabled else "Disabled"
        changed = list(queryset.exclude(enabled=enabled))
        queryset.filter(pk__in=[key.pk for key in changed]).update(enabled=enabled)
        for key in changed:
            self.log_change(request, key, f"{word}.")
        self.message_user(request, f"{word} {len(changed)} API keys.", messages.SUCCESS)
