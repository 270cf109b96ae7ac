"""The admin of the keys that sign cards (§8.4). A key is made, used, retired and deleted, and never edited."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST

from agents.admin_base import Form, ModelAdmin, action, display
from agents.models import SigningKey
from agents.registration import one_line
from agents.secrets import EncryptionError
from agents.signing_keys import generate_signing_key, retire_signing_key, rotate_signing_keys

LIST = "admin:agents_signingkey_changelist"


class SigningKeyForm(Form):
    """Asks for the algorithm of a new key, and makes it."""

    class Meta:
        model = SigningKey
        fields = ("algorithm",)

    def clean(self) -> dict[str, Any] | None:
        """Make the key, or say at its one field why not. The request's transaction takes it back on other errors."""
        cleaned = super().clean()
        if "algorithm" not in self.errors and self.instance.pk is None:
            try:
                self.made = generate_signing_key(self.cleaned_data["algorithm"])
            except (ValidationError, EncryptionError) as error:
                text = one_line(error) if isinstance(error, ValidationError) else str(error)
                raise ValidationError({"algorithm": text}) from error
        return cleaned

    def save(self, commit: bool = True) -> SigningKey:
        """The key that was made."""
        self.instance = self.made
        made: SigningKey = super().save(commit)
        return made


@admin.register(SigningKey)
class SigningKeyAdmin(ModelAdmin[SigningKey]):
    """Keys that sign cards: generate, rotate, retire."""

    form = SigningKeyForm
    list_display = ("kid", "algorithm", "phase", "created_at", "activated_at", "retired_at")
    list_filter = ("algorithm", "state")
    fields = ("kid", "algorithm", "state", "created_at", "activated_at", "retired_at")
    readonly_fields = ("kid", "state", "created_at", "activated_at", "retired_at")
    actions = ("retire",)
    list_before_template = "admin/agents/signingkey/rotate.html"

    class Media:
        css = {"all": ("agents/admin.css",)}

    def get_fields(self, request: HttpRequest, obj: SigningKey | None = None) -> Any:
        """A new key is only chosen by its algorithm."""
        return self.fields if obj else ("algorithm",)

    def has_change_permission(self, request: HttpRequest, obj: SigningKey | None = None) -> bool:
        """To rotate and retire; nothing of a key is edited."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: SigningKey | None = None) -> bool:
        """A retired key only: then it is published no longer."""
        is_retired = obj is None or obj.state == SigningKey.State.RETIRED
        return is_retired and super().has_delete_permission(request, obj)

    def get_actions(self, request: HttpRequest) -> Any:
        """Keys are deleted one by one."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def get_urls(self) -> Any:
        """Rotation concerns all keys, so it is no action on some."""
        view = self.admin_site.admin_view(require_POST(self.rotate))
        return [path("rotate/", view, name="agents_signingkey_rotate"), *super().get_urls()]

    def rotate(self, request: HttpRequest) -> HttpResponse:
        """The next key signs from now on."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        try:
            with transaction.atomic():  # with who did it, or not at all
                key = rotate_signing_keys()
                self.log_change(request, key, "Rotated.")
        except (ValidationError, EncryptionError) as error:
            text = one_line(error) if isinstance(error, ValidationError) else str(error)
            self.message_user(request, text, messages.ERROR)
        else:
            self.message_user(request, f"{key} signs from now on.", messages.SUCCESS)
        return redirect(LIST)

    @display(description="State", label={"Active": "success", "Next": "info", "Retired": "warning"})
    def phase(self, key: SigningKey) -> str:
        """Next, active or retired."""
        return SigningKey.State(key.state).label

    @action(description="Retire selected signing keys", permissions=["change"])
    def retire(self, request: HttpRequest, queryset: QuerySet[SigningKey]) -> None:
        """Sign nothing with these keys any more."""
        with transaction.atomic():  # with who did it, or not at all
            keys = [key for key in queryset if key.state != SigningKey.State.RETIRED]
            for key in keys:
                retire_signing_key(key)
                self.log_change(request, key, "Retired.")
        self.message_user(request, f"Retired {len(keys)} signing keys.", messages.SUCCESS)
