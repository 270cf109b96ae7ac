"""The address that callers use, as a page of Django's sees it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest

from agents.public_url import base_url_of

HEADERS = [(b"host", b"localhost:8000"), (b"x-forwarded-proto", b"https"), (b"x-forwarded-host", b"example.com")]


def page_request(**fields: Any) -> ASGIRequest:
    """A GET of a page, with what a server says of its connection."""
    scope = {"type": "http", "scheme": "http", "method": "GET", "path": "/", "query_string": b"", "headers": HEADERS}
    return ASGIRequest(scope | fields, BytesIO())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"client": ("127.0.0.1", 40000)}, "https://example.com"),
        ({"client": ("192.0.2.1", 40000)}, "http://localhost:8000"),
        ({"client": None}, "http://localhost:8000"),
        ({}, "http://localhost:8000"),
    ],
)
def test_forwarded_headers_count_from_trusted_proxies_only(fields: dict[str, Any], expected: str) -> None:
    """Nobody's address is trusted: a server on a Unix socket names no client."""
    assert base_url_of(page_request(**fields)) == expected
