"""Checks of what a card says, one per kind of field. Each raises ValidationError with a text for the form."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError

from agents.media_types import is_media_type

MAX_ITEMS = 100
MAX_ITEM = 1000


def validate_texts(value: Any) -> None:
    """A list of texts that are not empty."""
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValidationError("Give a list of texts, none of them empty.")
    if len(value) > MAX_ITEMS or any(len(item) > MAX_ITEM for item in value):
        raise ValidationError(f"Give at most {MAX_ITEMS} texts of at most {MAX_ITEM} characters.")
    if any("\x00" in item for item in value):
        raise ValidationError("A text holds a null character.")


def validate_media_types(value: Any) -> None:
    """A list of media types. Wildcards such as `*/*` and `text/*` count."""
    validate_texts(value)
    for item in value:
        if not is_media_type(item):
            raise ValidationError("%(item)s is not a media type such as text/plain.", params={"item": item})


def validate_not_blank(value: str) -> None:
    """A text with more than white space."""
    if not value.strip():
        raise ValidationError("This field cannot be blank.")
