"""The life of a signing key: next, active, retired. The admin and the command call the same functions.

One key signs at a time. The next one is published before it signs, so that nobody who keeps the key set for a while
meets a signature of a key that is unknown there. A retired key stays published for the cards that are out, until it is
deleted.
"""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from agents.models import SigningKey
from agents.signing import new_key

State = SigningKey.State
# One change at a time, so that no two processes make a key active.
_LOCK = 0x413242


@transaction.atomic
def generate_signing_key(algorithm: str = SigningKey.Algorithm.ES256) -> SigningKey:
    """Make a key: the active one if there is none, else the next one.

    Raises ValidationError when a next one waits already.
    """
    _lock()
    if SigningKey.objects.filter(state=State.NEXT).exists():
        raise ValidationError("There is a next key already. Rotate, and it signs.")
    key = new_key(algorithm)
    if not SigningKey.objects.filter(state=State.ACTIVE).exists():
        _activate(key)
    key.save()
    return key


@transaction.atomic
def rotate_signing_keys() -> SigningKey:
    """The next key signs from now on, one that is made for it if none waits; the one so far is retired.

    Returns the active key. Raises ValidationError when there is no key to rotate.
    """
    _lock()
    active = SigningKey.objects.filter(state=State.ACTIVE).first()
    successor = SigningKey.objects.filter(state=State.NEXT).first()
    if active is None and successor is None:
        raise ValidationError("There is no signing key yet. Generate one.")
    if active is not None:
        _retire(active)
        successor = successor or new_key(active.algorithm)
    assert successor is not None
    _activate(successor)
    successor.save()
    return successor


@transaction.atomic
def retire_signing_key(key: SigningKey) -> None:
    """Sign nothing with this key any more. If it was the active one, the next one takes over, or cards go unsigned."""
    _lock()
    key.refresh_from_db()
    was_active = key.state == State.ACTIVE
    if key.state == State.RETIRED:
        return
    _retire(key)
    successor = SigningKey.objects.filter(state=State.NEXT).first() if was_active else None
    if successor is not None:
        _activate(successor)
        successor.save()


def _activate(key: SigningKey) -> None:
    key.state, key.activated_at = State.ACTIVE, timezone.now()


def _retire(key: SigningKey) -> None:
    """It will never sign again: nothing of its private half is kept."""
    key.state, key.retired_at, key.private_key = State.RETIRED, timezone.now(), ""
    key.save()


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
