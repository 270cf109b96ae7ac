"""Users and groups in the look of the rest of the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User

from tasks_app.retention import admin as retention

if TYPE_CHECKING:
    from django.contrib.auth import forms
    from django.contrib.auth.forms import AdminPasswordChangeForm, UserCreationForm

    UserChangeForm = forms.UserChangeForm[User]
    _UserAdmin = DjangoUserAdmin[User]

    class ModelAdmin:
        """unfold's, which has no types; Django's own classes bring them."""
else:
    _UserAdmin = DjangoUserAdmin

    from unfold.admin import ModelAdmin
    from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

__all__ = ["retention"]

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(_UserAdmin, ModelAdmin):
    """People who may use the admin."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """What groups of people may do."""
