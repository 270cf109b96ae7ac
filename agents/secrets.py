"""Encryption of what the database keeps and must be able to say again: credentials of webhooks, private keys.

Fernet (AES-128-CBC with HMAC-SHA256): a text that another key made, or that was changed, is an error, never a wrong
answer. The first key encrypts, all of them decrypt, so keys are changed by putting a new one in front.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class EncryptionError(Exception):
    """A stored secret cannot be read or written. The message is for the operator; it holds no secret."""


def encrypt(text: str) -> str:
    """The text as a Fernet token (URL-safe ASCII, about 4/3 of its UTF-8 bytes and 76 more), another each time.

    Raises EncryptionError without a usable key.
    """
    return _fernet().encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """The text behind a token of `encrypt`. Raises EncryptionError when none of the keys made it."""
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken:
        raise EncryptionError(
            f"A stored secret was encrypted with a key that is not among those of {_source()}. Bring that key back, "
            "also as a second one, or store the secret again."
        ) from None


def _source() -> str:
    return "ENCRYPTION_KEYS" if settings.ENCRYPTION_KEYS else str(settings.LAYOUT.encryption_key)


def _fernet() -> MultiFernet:
    return _with_keys(tuple(settings.ENCRYPTION_KEYS)) if settings.ENCRYPTION_KEYS else _with_file()


@lru_cache(maxsize=1)
def _with_file() -> MultiFernet:
    """With the key that `manage.py up` made, and those that its file holds besides, one a line, the newest first."""
    path = settings.LAYOUT.encryption_key
    try:
        keys = tuple(path.read_text().split())
    except OSError as error:
        raise EncryptionError(
            f"There is no encryption key: ENCRYPTION_KEYS is not set and {path} cannot be read ({error.strerror}). "
            "`manage.py up` makes that file."
        ) from error
    return _with_keys(keys)


@lru_cache(maxsize=4)
def _with_keys(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        raise EncryptionError(
            f"{_source()} must hold Fernet keys, each 32 bytes in URL-safe base64, the newest first."
        ) from error
