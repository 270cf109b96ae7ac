"""Checks of what a card says, one per kind of field. Each raises ValidationError with a text for the form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any

from django.core.exceptions import ValidationError

from agents.media_types import is_media_type

MAX_ITEMS = 100
MAX_ITEM = 1000
MAX_PARAMS = 10_000
MAX_EXACT = 2**53 - 1


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


def validate_params(value: Any) -> None:
    """A JSON object that every reader reads alike: whole numbers that a double holds (RFC 8785 §3.2.2.3), no U+0000."""
    if not isinstance(value, dict):
        raise ValidationError('Give a JSON object, such as {"level": 1}.')
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > MAX_PARAMS:
        raise ValidationError(f"Give at most {MAX_PARAMS} characters.")
    if "\\u0000" in text:
        raise ValidationError("A text holds a null character.")
    if not all(_is_exact(number) for number in _numbers(value)):
        raise ValidationError(f"Whole numbers go from -{MAX_EXACT} to {MAX_EXACT}, others are finite.")


def _numbers(value: Any) -> Iterator[int | float]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _numbers(inner)
    elif isinstance(value, int | float):
        yield value


def _is_exact(number: float) -> bool:
    return abs(number) <= MAX_EXACT if isinstance(number, int) else isfinite(number)


def validate_not_blank(value: str) -> None:
    """A text with more than white space."""
    if not value.strip():
        raise ValidationError("This field cannot be blank.")
