"""The admin of API keys."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from agents.admin_base import ModelAdmin, PlainFields, action, display
from agents.models import ApiKey


@admin.register(ApiKey)
class ApiKeyAdmin(PlainFields, ModelAdmin[ApiKey]):
    """API keys. A key is shown on the page that follows its making, and never again."""

    list_display = ("name", "owner", "prefix", "state", "expires_at", "last_used_at", "created_at")
    list_filter = ("enabled",)
    search_fields = ("name", "owner", "prefix")
    actions = ("enable", "disable")
    fields = ("name", "owner", "groups", "enabled", "expires_at", "prefix", "last_used_at", "created_at")
    readonly_fields = ("owner", "prefix", "last_used_at", "created_at")
    add_fieldsets = ((None, {"fields": ("name", "owner", "groups", "expires_at")}),)

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
        with transaction.atomic():  # with who did it, or not at all
            changed = list(queryset.exclude(enabled=enabled))
            queryset.filter(pk__in=[key.pk for key in changed]).update(enabled=enabled)
            for key in changed:
                self.log_change(request, key, f"{word}.")
        self.message_user(request, f"{word} {len(changed)} API keys.", messages.SUCCESS)
