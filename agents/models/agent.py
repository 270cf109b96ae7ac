"""Agents that the host serves."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator, URLValidator
from django.db import models

from agents.runtimes import factory
from agents.runtimes.errors import ExecutorError
from agents.validators import validate_media_types, validate_not_blank

SLUG_MAX = 63
WEB_URL = URLValidator(schemes=["http", "https"])


def text_modes() -> list[str]:
    """Media types of an agent that says nothing else."""
    return ["text/plain"]


def _days(state: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(36500)],
        help_text=f"How many days a {state} task is kept. Empty: for ever.",
    )


class Agent(models.Model):
    """One hosted agent: what its card says, what runs behind it and who may call it."""

    class Kind(models.TextChoices):
        PYTHON = factory.PYTHON, "Python class"
        SIMULATOR = factory.SIMULATOR, "Simulator"

    class Execution(models.TextChoices):
        WEB = "web", "Web process"
        WORKER = "worker", "Celery worker"

    class LargeParts(models.TextChoices):
        INLINE = "inline", "In the answer, as they came"
        URL = "url", "As signed URLs"

    class Versions(models.TextChoices):
        BOTH = "both", "1.0 and 0.3, in one card"
        V1_0 = "1.0", "1.0 only"
        V0_3 = "0.3", "0.3 only"

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
        default=True,
        help_text="Callers may have the host tell a webhook of the changes of their tasks.",
    )

    versions = models.CharField(
        max_length=10,
        choices=Versions.choices,
        default=Versions.BOTH,
        help_text="Versions of A2A that the agent is served in. A request in another one is refused.",
    )
    extended_card = models.BooleanField(
        default=False,
        help_text="Callers with a key may get a card that also has the notes below and the skills of their groups.",
    )
    sign_card = models.BooleanField(
        default=True, help_text="Sign the cards with the host's active signing key, if there is one."
    )
    is_root = models.BooleanField(
        "at the host root",
        default=False,
        help_text="The agent also answers at the host's own address, without /agents/SLUG. One agent at most.",
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
    deadline_seconds = models.PositiveIntegerField(
        default=86400,
        db_default=86400,
        validators=[MinValueValidator(1), MaxValueValidator(30 * 86400)],
        help_text="A message that has not been dealt with this long after it was accepted FAILS its task, time in the "
        "queue and repeated runs included. In seconds, at most 30 days.",
    )
    max_retries = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        validators=[MaxValueValidator(20)],
        help_text="How often a run is repeated whose process died. Only for executors that say `repeatable = True`: "
        "what such a run had done already is done again.",
    )
    answer_within_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(365 * 86400)],
        help_text="A task that has waited this long for input or authorization FAILS. In seconds, at most 365 days; "
        "empty: it waits for ever.",
    )

    # What is kept
    large_parts = models.CharField(
        max_length=10,
        choices=LargeParts.choices,
        default=LargeParts.INLINE,
        db_default=LargeParts.INLINE,
        help_text="How callers are given parts that are kept in files because of their size.",
    )
    max_task_bytes = models.PositiveBigIntegerField(
        default=1024**3,
        db_default=1024**3,
        validators=[MinValueValidator(1024)],
        help_text="Most bytes in files of one task. In bytes.",
    )
    max_stored_bytes = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1024)],
        help_text="Most bytes in files of all tasks of the agent. In bytes; empty: no limit.",
    )
    keep_completed_days = _days("COMPLETED")
    keep_failed_days = _days("FAILED")
    keep_canceled_days = _days("CANCELED")
    keep_rejected_days = _days("REJECTED")

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
        constraints = [
            models.UniqueConstraint(fields=["is_root"], condition=models.Q(is_root=True), name="agents_one_root")
        ]

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
        if not {"max_retries", "executor", "kind"} & (excluded | errors.keys()):
            errors |= self._retry_errors()
        if not {"provider_organization", "provider_url"} & (excluded | errors.keys()):
            errors |= self._provider_errors()
        if "is_root" not in excluded:
            errors |= self._root_errors()
        if errors:
            raise ValidationError(errors)

    def _executor_errors(self) -> dict[str, Any]:
        try:
            factory.check_executor(self.kind, self.executor)
        except ExecutorError as error:
            return {"executor": [ValidationError(str(error))]}
        return {}

    def _retry_errors(self) -> dict[str, Any]:
        if not self.max_retries or factory.is_repeatable(self.kind, self.executor):
            return {}
        text = f"{self.executor} does not say `repeatable = True`, so its lost runs are not repeated: use 0."
        return {"max_retries": [ValidationError(text)]}

    def _provider_errors(self) -> dict[str, Any]:
        """§4.4.2: a provider has both members."""
        if bool(self.provider_organization) == bool(self.provider_url):
            return {}
        missing = "provider_url" if self.provider_organization else "provider_organization"
        return {missing: [ValidationError("A provider needs both, an organization and a URL.")]}

    def _root_errors(self) -> dict[str, Any]:
        """The host has one root."""
        other = Agent.objects.filter(is_root=True).exclude(pk=self.pk).first() if self.is_root else None
        if other is None:
            return {}
        return {"is_root": [ValidationError(f"The agent {other.slug} is there. Only one can be.")]}
