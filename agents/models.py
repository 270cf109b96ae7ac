"""Agents that the host serves, and the keys of those who may call them.

`full_clean` of an agent and its skills holds the rules of §4.4.1: what passes it makes a valid card. Rows are saved by
`registration` and the admin only, which both call it. Triggers announce every change to all processes (`registry`).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator, URLValidator
from django.db import models
from django.utils import timezone

from agents.keys import ANONYMOUS, hash_key, new_key, shown_part
from agents.runtimes import factory
from agents.runtimes.errors import ExecutorError
from agents.validators import validate_media_types, validate_not_blank, validate_texts

SLUG_MAX = 63
WEB_URL = URLValidator(schemes=["http", "https"])


def text_modes() -> list[str]:
    """Media types of an agent that says nothing else."""
    return ["text/plain"]


class Agent(models.Model):
    """One hosted agent: what its card says, what runs behind it and who may call it."""

    class Kind(models.TextChoices):
        PYTHON = factory.PYTHON, "Python class"
        SIMULATOR = factory.SIMULATOR, "Simulator"

    class Execution(models.TextChoices):
        WEB = "web", "Web process"
        WORKER = "worker", "Celery worker"

    slug = models.CharField(
        max_length=SLUG_MAX,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z",
                "Use 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends.",
            )
        ],
        help_text="Part of every URL of the agent: /agents/SLUG. Clients keep these URLs, so choose it once.",
    )
    enabled = models.BooleanField(
        default=True, help_text="A disabled agent looks absent to every caller; its running tasks finish."
    )

    # Card (§4.4.1)
    name = models.CharField(max_length=200, validators=[validate_not_blank], help_text="For people, as on the card.")
    description = models.TextField(
        validators=[validate_not_blank], help_text="What the agent does. People and other agents choose by this."
    )
    version = models.CharField(
        max_length=50, default="1.0.0", validators=[validate_not_blank], help_text="The agent's own version."
    )
    documentation_url = models.URLField(blank=True, validators=[WEB_URL], help_text="Where people read more.")
    icon_url = models.URLField(blank=True, validators=[WEB_URL], help_text="A square picture.")
    provider_organization = models.CharField(
        max_length=200, blank=True, help_text="Who offers the agent. Needs the URL too."
    )
    provider_url = models.URLField(blank=True, validators=[WEB_URL], help_text="Web site of the organization.")
    default_input_modes = models.JSONField(
        default=text_modes,
        validators=[validate_media_types],
        help_text="Media types that the agent takes, such as text/plain, image/* or */*. Others are refused.",
    )
    default_output_modes = models.JSONField(
        default=text_modes,
        validators=[validate_media_types],
        help_text="Media types that the agent gives, such as text/plain.",
    )
    streaming = models.BooleanField(
        default=True, help_text="Callers may stream (SendStreamingMessage, SubscribeToTask)."
    )
    push_notifications = models.BooleanField(
        default=True, help_text="Webhooks for changes of a task. The card says so once the host delivers them: it does not yet."
    )

    # What runs
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.PYTHON)
    executor = models.CharField(
        max_length=200,
        help_text="Dotted path of an AgentExecutor class, such as package.module.Class, or the name of a simulator, "
        "such as echo. It is tried out when you save.",
    )
    execution = models.CharField(
        max_length=10,
        choices=Execution.choices,
        default=Execution.WEB,
        help_text="Quick agents that only wait (await) run in the web process. Those that compute or block belong in a "
        "worker.",
    )
    timeout_seconds = models.PositiveIntegerField(
        default=3600,
        validators=[MinValueValidator(1), MaxValueValidator(7 * 86400)],
        help_text="A run that takes longer FAILS its task. In seconds, at most 7 days.",
    )
    cancel_grace_seconds = models.PositiveIntegerField(
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(300)],
        help_text="How long a cancelled run may take to say CANCELED itself. In seconds, at most 300.",
    )
    max_request_bytes = models.PositiveIntegerField(
        default=8 * 1024 * 1024,
        validators=[MinValueValidator(1024), MaxValueValidator(256 * 1024 * 1024)],
        help_text="Largest request body, in bytes: 1024 (1 KiB) to 268435456 (256 MiB).",
    )

    # Who may call
    open = models.BooleanField(default=False, help_text="Anonymous callers are served. Otherwise an API key is needed.")
    shared_history = models.BooleanField(
        default=False,
        help_text="Anonymous callers share one history, so they may list tasks. Otherwise they reach a task by its id "
        "only.",
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

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """Also checks what one field alone cannot say; each error names the field to change."""
        errors: dict[str, Any] = {}
        excluded = set(exclude or ())
        try:
            super().clean_fields(exclude=exclude)
        except ValidationError as error:
            errors = error.error_dict
        if "executor" not in excluded and "executor" not in errors and "kind" not in errors:
            errors |= self._executor_errors()
        if not {"provider_organization", "provider_url"} & (excluded | errors.keys()):
            errors |= self._provider_errors()
        if errors:
            raise ValidationError(errors)

    def _executor_errors(self) -> dict[str, Any]:
        try:
            factory.check_executor(self.kind, self.executor)
        except ExecutorError as error:
            return {"executor": [ValidationError(str(error))]}
        return {}

    def _provider_errors(self) -> dict[str, Any]:
        """§4.4.2: a provider has both members."""
        if bool(self.provider_organization) == bool(self.provider_url):
            return {}
        missing = "provider_url" if self.provider_organization else "provider_organization"
        return {missing: [ValidationError("A provider needs both, an organization and a URL.")]}


class Skill(models.Model):
    """One skill on an agent's card (§4.4.5)."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="skills")
    position = models.PositiveIntegerField(default=0, help_text="Order on the card, smallest first.")
    skill_id = models.CharField(
        "id", max_length=100, validators=[validate_not_blank], help_text="Unique in this agent, such as order-status."
    )
    name = models.CharField(max_length=200, validators=[validate_not_blank])
    description = models.TextField(validators=[validate_not_blank])
    tags = models.JSONField(default=list, validators=[validate_texts], help_text="Keywords, at least one.")
    examples = models.JSONField(
        default=list, blank=True, validators=[validate_texts], help_text="Messages that this skill answers."
    )
    input_modes = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_media_types],
        help_text="Media types instead of the agent's. The agent takes what any of its skills takes.",
    )
    output_modes = models.JSONField(
        default=list, blank=True, validators=[validate_media_types], help_text="Media types instead of the agent's."
    )

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["agent", "skill_id"], name="agents_skill_once")]

    def __str__(self) -> str:
        return self.name


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
    def issue(cls, name: str, owner: str = "", expires_at: datetime | None = None, key: str = "") -> tuple[ApiKey, str]:
        """Make and store a key; returns the row and the key, which cannot be read again.

        Raises ValidationError, naming the field, for a name that is taken and an owner that is reserved.
        """
        row = cls(name=name, owner=owner, expires_at=expires_at)
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
