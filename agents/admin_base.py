"""django-unfold's admin classes with the types of Django's, which they extend; unfold itself has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.forms import Field, Textarea
from django.http import HttpRequest

from agents.fields import TextListField

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin, StackedInline
    from django.contrib.admin import action as action
    from django.contrib.admin.options import BaseModelAdmin
    from django.forms import BaseInlineFormSet, ModelForm

    Form = ModelForm[Any]
    InlineFormSet = BaseInlineFormSet[Any, Any, ModelForm[Any]]
    _AnyModelAdmin = BaseModelAdmin[Any]
    _F = TypeVar("_F", bound=Callable[..., Any])

    def display(*, description: str, label: dict[str, str] | None = None) -> Callable[[_F], _F]:
        """A column or read-only field; `label` gives values a colour."""
else:
    from django.forms import ModelForm as Form
    from unfold import admin as unfold
    from unfold.decorators import action, display
    from unfold.forms import PaginationInlineFormSet as InlineFormSet

    _AnyModelAdmin = object

    class _Subscriptable:
        """Lets a class say its model, as the types of Django's classes ask."""

        def __class_getitem__(cls, models):
            return cls

    class ModelAdmin(_Subscriptable, unfold.ModelAdmin):
        pass

    class StackedInline(_Subscriptable, unfold.StackedInline):
        pass


TEXT_ROWS = 3

__all__ = ["Form", "InlineFormSet", "ModelAdmin", "PlainFields", "StackedInline", "action", "display"]


class PlainFields(_AnyModelAdmin):
    """Form fields for people: lists are typed line by line, a URL without a scheme means https."""

    def formfield_for_dbfield(
        self, db_field: models.Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Field | None:
        """The form field of a model field."""
        if isinstance(db_field, models.JSONField) and isinstance(db_field.get_default(), list):
            kwargs["form_class"] = TextListField
        elif isinstance(db_field, models.URLField):
            kwargs["assume_scheme"] = "https"
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, Textarea):
            field.widget.attrs["rows"] = TEXT_ROWS
        return field
