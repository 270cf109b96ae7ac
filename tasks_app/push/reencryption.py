"""Changing the keys of stored secrets while the host runs: all of them are encrypted again, in small batches that may
be interrupted and repeated at any point. A secret that a process changes meanwhile stays as that process left it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.db import models

from agents.models import SigningKey
from agents.secrets import encryption_keys, fernets
from tasks_app.models import PushConfig

BATCH = 500


@dataclass(frozen=True, slots=True)
class Place:
    """Columns that hold secrets, by the columns that name a row."""

    model: type[models.Model]
    key: tuple[str, ...]
    columns: tuple[str, ...]


PLACES = (
    Place(PushConfig, ("task_id", "config_id"), ("token", "credentials")),
    Place(SigningKey, ("id",), ("private_key",)),
)


def reencrypt() -> int:
    """Encrypt with the first key whatever another one encrypted. Returns how many secrets that were.

    Raises EncryptionError without usable keys; what none of them can read stays as it is.
    """
    keys = fernets(encryption_keys())
    everything = MultiFernet(keys)
    changed = 0
    for place in PLACES:
        for row in _rows(place):
            stale = [column for column in place.columns if _holder(row[column], keys) not in (None, 0)]
            fresh = {column: everything.rotate(row[column]).decode() for column in stale}
            if fresh:
                name = {column: row[column] for column in place.key}
                seen = {column: row[column] for column in fresh}
                changed += len(fresh) * place.model._default_manager.filter(**name, **seen).update(**fresh)
    return changed


def holders() -> Counter[int | None]:
    """How many secrets each key encrypted, by its place among the keys, None for those that none of them can read."""
    keys = fernets(encryption_keys())
    return Counter(_holder(row[c], keys) for place in PLACES for row in _rows(place) for c in place.columns if row[c])


def _holder(token: str, keys: Sequence[Fernet]) -> int | None:
    """Which key made a token; None for none of them, and for no token."""
    for number, key in enumerate(keys):
        try:
            key.decrypt(token.encode())
        except InvalidToken:
            continue
        return number
    return None


def _rows(place: Place) -> Iterator[dict[str, Any]]:
    """All rows with a secret, in the order of their key, a batch at a time."""
    filled = ~models.Q(**dict.fromkeys(place.columns, ""))
    rows = place.model._default_manager.filter(filled).order_by(*place.key).values(*place.key, *place.columns)
    beyond = models.Q()
    while batch := list(rows.filter(beyond)[:BATCH]):
        yield from batch
        beyond = _beyond({column: batch[-1][column] for column in place.key})


def _beyond(last: dict[str, Any]) -> models.Q:
    """Rows after one, by the order of its columns."""
    (first, value), *others = last.items()
    beyond = models.Q(**{f"{first}__gt": value})
    return beyond | models.Q(**{first: value}) & _beyond(dict(others)) if others else beyond
