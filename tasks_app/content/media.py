"""Media types and file names as callers and agents gave them, so that a header may hold them."""

from __future__ import annotations

import re

from agents.media_types import essence

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_UNSAFE_NAME = re.compile(r"[\x00-\x1f\x7f/\\]+")


def media_type_of(given: str, otherwise: str = "application/octet-stream") -> str:
    """A media type without its parameters; `otherwise` for none, and for what is none."""
    plain = essence(given)
    return plain if _MEDIA_TYPE.fullmatch(plain) else otherwise


def safe_name(given: str) -> str:
    """A name without folders and control characters; it may be empty."""
    return _UNSAFE_NAME.sub("_", given).strip(". ")
