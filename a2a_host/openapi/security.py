"""How callers authenticate, as the document says it."""

from __future__ import annotations

from typing import Any

SCHEMES: dict[str, dict[str, Any]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key of the host as a bearer token."},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key of the host."},
}
SECURITY: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKey": []}, {}]
"""One of them; agents that are open take callers without."""
