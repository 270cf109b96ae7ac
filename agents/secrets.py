"""Encryption of what the database keeps and must be able to say again: credentials of webhooks, private keys.

Fernet (AES-128-CBC with HMAC-SHA256): a text that another key made, or that was changed, is an error, never a wrong
answer. The first key encrypts, all of them decrypt, so keys are changed by putting a new one in front. The file of keys
is read again when it has changed, so no process has to be restarted for that (`manage.py encryptionkey`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

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


def encryption_keys() -> tuple[str, ...]:
    """The keys, the newest first. Raises EncryptionError when the file of keys cannot be read."""
    if settings.ENCRYPTION_KEYS:
        return tuple(settings.ENCRYPTION_KEYS)
    path: Path = settings.LAYOUT.encryption_key
    try:
        found = path.stat()  # a rotation puts another file in its place
        return _read(path, (found.st_ino, found.st_mtime_ns, found.st_size))
    except OSError as error:
        raise EncryptionError(
            f"There is no encryption key: ENCRYPTION_KEYS is not set and {path} cannot be read ({error.strerror}). "
            "`manage.py up` makes that file."
        ) from error


def fernets(keys: Sequence[str]) -> list[Fernet]:
    """Keys ready for use. Raises EncryptionError for one that is none, or for none at all."""
    try:
        found = [Fernet(key) for key in keys]
        MultiFernet(found)
    except ValueError as error:
        raise EncryptionError(
            f"{_source()} must hold Fernet keys, each 32 bytes in URL-safe base64, the newest first."
        ) from error
    return found


def _source() -> str:
    return "ENCRYPTION_KEYS" if settings.ENCRYPTION_KEYS else str(settings.LAYOUT.encryption_key)


def _fernet() -> MultiFernet:
    return _with_keys(encryption_keys())


@lru_cache(maxsize=4)
def _read(path: Path, version: tuple[int, int, int]) -> tuple[str, ...]:
    """The keys in a file, one a line; `version` tells one file of that name from the next."""
    return tuple(path.read_text().split())


@lru_cache(maxsize=4)
def _with_keys(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet(fernets(keys))
