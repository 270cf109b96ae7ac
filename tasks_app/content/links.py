"""Signed URLs of files: whoever has one may read that file until it expires."""

from __future__ import annotations

import time

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

_SALT = "a2a.files"


def own_url() -> str:
    """The address of the host for callers of whom nothing else is known."""
    return str(settings.PUBLIC_URL) or f"http://{settings.HOST}:{settings.PORT}"


def file_url(base_url: str, part_id: str) -> str:
    """The URL of a file below the address of the host, good for FILE_URL_SECONDS."""
    expires = int(time.time() + settings.FILE_URL_SECONDS)
    return f"{base_url}/files/{part_id}?expires={expires}&signature={_signature(part_id, expires)}"


def is_valid(part_id: str, expires: str, signature: str) -> bool:
    """Whether a URL with these values was given out by this host and is good now."""
    if not (expires.isascii() and expires.isdecimal() and len(expires) <= 12):
        return False
    return constant_time_compare(signature, _signature(part_id, int(expires))) and int(expires) > time.time()


def _signature(part_id: str, expires: int) -> str:
    return salted_hmac(_SALT, f"{part_id} {expires}", algorithm="sha256").hexdigest()
