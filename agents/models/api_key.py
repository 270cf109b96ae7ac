"""The keys of those who may call."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

from agents.keys import ANONYMOUS, hash_key, new_key, shown_part
from agents.validators import validate_not_blank, validate_texts


class ApiKey(models.Model):
    """A caller's key. Only its SHA-256 is kept; the key itself is shown once, when it is made."""

    name = models.CharField(
        max_length=100, unique=True, validators=[validate_not_blank], help_text="What you call this key."
    )
    owner = models.CharField(
        max_length=100,
        blank=True,
        help_text="The principal that this key speaks for; the name of the key if you leave it empty. Keys with one "
        "owner see the same tasks.",
    )
    groups = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_texts],
        help_text="Groups of the caller; they decide what the extended cards of agents show.",
    )
    prefix = models.CharField(max_length=16, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    enabled = models.BooleanField(default=True, help_text="A disabled key is refused.")
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Refused from then on. Empty: never.")
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="To the minute.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name = "API key"
        constraints = [
            models.CheckConstraint(
                name="agents_apikey_not_anonymous",
                condition=~models.Q(owner__in=["", ANONYMOUS]),
                violation_error_message="An API key needs an owner other than anonymous.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def clean(self) -> None:
        """The owner of a key is somebody: the tasks of anonymous callers are nobody's."""
        self.owner = self.owner.strip() or self.name.strip()
        if self.owner.lower() == ANONYMOUS:
            raise ValidationError({"owner": "The owner anonymous is reserved for callers without a key."})

    @classmethod
    def issue(
        cls, name: str, owner: str = "", expires_at: datetime | None = None, key: str = "", groups: Sequence[str] = ()
    ) -> tuple[ApiKey, str]:
        """Make and store a key; returns the row and the key, which cannot be read again.

        Raises ValidationError, naming the field, for a name that is taken and an owner that is reserved.
        """
        row = cls(name=name, owner=owner, expires_at=expires_at, groups=list(groups))
        key = row.give(key)
        row.full_clean()
        row.save()
        return row, key

    def give(self, key: str = "") -> str:
        """Give an unsaved row its key, a new one unless `key` is one; returns it."""
        key = key or new_key()
        self.prefix = shown_part(key)
        self.digest = hash_key(key)
        return key

    @property
    def usable(self) -> bool:
        """Whether a call with this key is served now."""
        return self.enabled and (self.expires_at is None or self.expires_at > timezone.now())
