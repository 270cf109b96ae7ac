"""API keys as text: how they are made, told apart and hashed.

A key is 256 random bits, so a plain fast hash of it cannot be searched.
"""

from __future__ import annotations

import hashlib
import secrets

KEY_PREFIX = "a2a_"
ANONYMOUS = "anonymous"
SHOWN = 8
LONG = 24


def new_key() -> str:
    """A new random key."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """Hex SHA-256 of a key, as stored. Any text a header can carry is allowed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def shown_part(key: str) -> str:
    """The start of a key, which stays readable so that people can tell keys apart; nothing of one that is short."""
    return key[:SHOWN] if len(key) >= LONG else ""
