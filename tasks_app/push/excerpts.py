"""What the ledger keeps of an answer: enough to see what went wrong, and nothing that does harm where it is read."""

from __future__ import annotations

from collections.abc import Iterable

EXCERPT_MAX = 500
"""Characters."""
_HIDDEN = "[…]"
_SHORTEST_SECRET = 4  # what is shorter tells nothing, and would tear holes into ordinary words


def excerpt(body: bytes, secrets: Iterable[str]) -> str:
    """The beginning of an answer as text: what is no UTF-8 or not printable is replaced, and our secrets are left out.

    A receiver that echoes its request must not put the credentials of a config before everybody who sees the ledger.
    """
    text = body.decode("utf-8", "replace")
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _HIDDEN)
    text = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text[: 4 * EXCERPT_MAX])
    text = " ".join(text.split())
    return text if len(text) <= EXCERPT_MAX else f"{text[: EXCERPT_MAX - 1]}…"
