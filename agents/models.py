"""Agents that the host serves, and the keys of those who may call them."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils import timezone

KEY_PREFIX = "a2a_"


def text_modes() -> list[str]:
    """Media types of an agent that says nothing else."""
    return ["text/plain"]


class Agent(models.Model):
    """One hosted agent: what its card says, what runs behind it and who may call it."""

    class Kind(models.TextChoices):
        PYTHON = "python", "Python class (a2a-sdk AgentExecutor)"
        SIMULATOR = "simulator", "Simulator"

    class Execution(models.TextChoices):
        WEB = "web", "In the web process"
        WORKER = "worker", "In a Celery worker"

    slug = models.CharField(
        max_length=63,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$",
                "Use 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends.",
            )
        ],
        help_text="Part of every URL of the agent: /agents/<slug>.",
    )
    enabled = models.BooleanField(default=True, help_text="A disabled agent looks absent to every caller.")

    # Card (§4.4.1)
    name = models.CharField(max_length=200)
    description = models.TextField()
    version = models.CharField(max_length=50, default="1.0.0", help_text="The agent's own version.")
    documentation_url = models.URLField(blank=True)
    icon_url = models.URLField(blank=True)
    provider_organization = models.CharField(max_length=200, blank=True)
    provider_url = models.URLField(blank=True)
    default_input_modes = models.JSONField(default=text_modes, help_text='Media types, such as ["text/plain"].')
    default_output_modes = models.JSONField(default=text_modes, help_text='Media types, such as ["text/plain"].')
    streaming = models.BooleanField(default=True)
    push_notifications = models.BooleanField(default=True)

    # What runs
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.PYTHON)
    executor = models.CharField(
        max_length=200,
        help_text="Dotted path of an AgentExecutor class, or the name of a simulator.",
    )
    execution = models.CharField(max_length=10, choices=Execution.choices, default=Execution.WEB)
    timeout_seconds = models.PositiveIntegerField(
        default=3600,
        validators=[MinValueValidator(1), MaxValueValidator(7 * 86400)],
        help_text="A run that takes longer FAILS its task.",
    )
    cancel_grace_seconds = models.PositiveIntegerField(
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(300)],
        help_text="How long a cancelled run may take to say CANCELED itself.",
    )
    max_request_bytes = models.PositiveIntegerField(
        default=8 * 1024 * 1024,
        validators=[MinValueValidator(1024), MaxValueValidator(256 * 1024 * 1024)],
        help_text="Largest request body, in bytes.",
    )

    # Who may call
    open = models.BooleanField(
        default=False, help_text="Anonymous callers are served. Otherwise an API key is needed."
    )
    shared_history = models.BooleanField(
        default=False,
        help_text="Anonymous callers share one history, so they may list tasks. Otherwise they reach a task by its id only.",
    )
    idempotent_sends = models.BooleanField(
        default=True,
        help_text="The same messageId sent twice by one caller gives one task.",
    )

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug


class Skill(models.Model):
    """One skill on an agent's card (§4.4.5)."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="skills")
    position = models.PositiveIntegerField(default=0)
    skill_id = models.CharField(max_length=100)
    name = models.CharField(max_length=200)
    description = models.TextField()
    tags = models.JSONField(default=list, help_text='Keywords, such as ["orders"]. At least one.')
    examples = models.JSONField(default=list, blank=True)
    input_modes = models.JSONField(default=list, blank=True)
    output_modes = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["agent", "skill_id"], name="agents_skill_once")]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A caller's key. Only its SHA-256 is kept; the key itself is shown once, when it is made.

    The keys are 256 random bits, so a plain fast hash cannot be searched.
    """

    name = models.CharField(max_length=100, unique=True)
    owner = models.CharField(
        max_length=100,
        help_text="The principal that this key speaks for. Keys with one owner see the same tasks.",
    )
    prefix = models.CharField(max_length=16, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    enabled = models.BooleanField(default=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @staticmethod
    def hash(key: str) -> str:
        """Hex SHA-256 of a key, as stored."""
        return hashlib.sha256(key.encode()).hexdigest()

    @classmethod
    def issue(cls, name: str, owner: str = "", expires_at: datetime | None = None, key: str = "") -> tuple[ApiKey, str]:
        """Make and store a key; returns the row and the key, which cannot be read again."""
        key = key or KEY_PREFIX + secrets.token_urlsafe(32)
        row = cls.objects.create(
            name=name, owner=owner or name, prefix=key[:8], digest=cls.hash(key), expires_at=expires_at
        )
        return row, key

    @property
    def usable(self) -> bool:
        """Whether a call with this key is served now."""
        return self.enabled and (self.expires_at is None or self.expires_at > timezone.now())

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.owner = self.owner or self.name
        super().save(*args, **kwargs)
