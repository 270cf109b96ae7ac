"""Erasures in the admin: asked for with a preview and a name to type, and what became of them."""

from __future__ import annotations

import logging
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString

from agents.admin.panels import PANELS
from agents.admin_base import ModelAdmin, display
from agents.models import Agent
from tasks_app.models import Erasure
from tasks_app.retention.preview import quick_preview
from tasks_app.retention.requests import find, request_erasure, ring
from tasks_app.retention.scope import Scope

logger = logging.getLogger(__name__)

LIST = "admin:tasks_app_erasure_changelist"
_MOST_ROWS = 100
_MOST_COUNTED = 10_000


class EraseForm(forms.Form):
    """What is to go. `confirm` is typed once it has been shown what that is."""

    owner = forms.CharField(
        max_length=120,
        required=False,
        strip=False,
        help_text="The principal, as tasks and API keys name it. Empty: the context below, of whoever it is.",
    )
    agent = forms.CharField(max_length=63, required=False, help_text="Slug. Empty: every agent.")
    context_id = forms.CharField(
        label="Context",
        max_length=255,
        required=False,
        strip=False,
        help_text="One conversation of the agent. Optional.",
    )
    with_keys = forms.BooleanField(
        label="API keys too", required=False, help_text="Delete the owner's keys first, so that nothing new comes."
    )
    confirm = forms.CharField(required=False, strip=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("class", "agents-check" if name == "with_keys" else "agents-input")

    @property
    def scope(self) -> Scope:
        """What the form says."""
        data = self.cleaned_data
        return Scope(data["owner"], data["agent"], data["context_id"])

    def clean(self) -> dict[str, Any]:
        """Each error is at its field."""
        data = super().clean() or {}
        if not self.errors:
            self.scope.check()
            if data["with_keys"] and not self.scope.is_person:
                raise ValidationError({"with_keys": "Keys go with everything of their owner only."})
        return data


@admin.register(Erasure)
class ErasureAdmin(ModelAdmin[Erasure]):
    """What was erased or is being erased. Nothing of it can be edited or taken back."""

    list_display = ("reference", "agent", "progress", "tasks", "requested_by", "requested_at", "finished_at")
    list_display_links = None
    list_filter = ("requested_by",)

    def has_change_permission(self, request: HttpRequest, obj: Erasure | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Erasure | None = None) -> bool:
        """Nobody."""
        return False

    @display(description="State", label={"done": "success", "running": "info", "waiting": "warning"})
    def progress(self, erasure: Erasure) -> str:
        """Done, running, or waiting after a problem."""
        if erasure.finished_at is not None:
            return "done"
        return "waiting" if erasure.problem else "running"

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> Any:
        """First what, then what that is and a name to type, then the erasure."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = EraseForm(request.POST if request.method == "POST" else None)
        if not form.is_valid():
            return self._page(request, form, {})
        scope = form.scope
        if "erase" in request.POST and form.cleaned_data["confirm"] == scope.typed:
            return self._erase(request, form)
        if "erase" in request.POST:
            form.add_error("confirm", f"Type {scope.typed} to erase it.")
        found = find(scope)
        rows = found.tasks[:_MOST_ROWS]
        shown = {"found": found, "rows": rows, "more": len(found.tasks) - len(rows), "scope": scope}
        return self._page(request, form, shown)

    def _page(self, request: HttpRequest, form: EraseForm, context: dict[str, Any]) -> HttpResponse:
        everything = {
            **self.admin_site.each_context(request),
            "title": "Erase data",
            "opts": self.opts,
            "form": form,
            "media": self.media,
            **context,
        }
        return TemplateResponse(request, "admin/tasks_app/erasure/erase.html", everything)

    def _erase(self, request: HttpRequest, form: EraseForm) -> HttpResponse:
        erasure = request_erasure(form.scope, request.user.get_username(), form.cleaned_data["with_keys"])
        text = f"Everything of {erasure.reference} is being erased."
        try:
            ring()
        except Exception as error:  # Each transport has errors of its own; the worker looks by itself.
            logger.warning("No worker could be told of an erasure: %s", type(error).__name__)
            text += " It begins within some minutes."
        self.message_user(request, text, messages.SUCCESS)
        return redirect(LIST)

    class Media:
        css = {"all": ("agents/admin.css",)}


def _retention_panel(agent: Agent) -> SafeString:
    """What of the agent's tasks is over its time, for its page."""
    rows = quick_preview(agent.slug, _MOST_COUNTED)
    return render_to_string("admin/tasks_app/retention.html", {"rows": rows, "most": _MOST_COUNTED})


PANELS["retention"] = _retention_panel
