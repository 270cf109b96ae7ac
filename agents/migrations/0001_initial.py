"""Agents, their skills and API keys."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import agents.models
import agents.validators


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Agent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "slug",
                    models.CharField(
                        help_text="Part of every URL of the agent: /agents/SLUG. Clients keep these URLs, so choose it once.",
                        max_length=63,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\Z",
                                "Use 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends.",
                            )
                        ],
                    ),
                ),
                (
                    "enabled",
                    models.BooleanField(
                        default=True,
                        help_text="A disabled agent looks absent to every caller; its running tasks finish.",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="For people, as on the card.",
                        max_length=200,
                        validators=[agents.validators.validate_not_blank],
                    ),
                ),
                (
                    "description",
                    models.TextField(
                        help_text="What the agent does. People and other agents choose by this.",
                        validators=[agents.validators.validate_not_blank],
                    ),
                ),
                (
                    "version",
                    models.CharField(
                        default="1.0.0",
                        help_text="The agent's own version.",
                        max_length=50,
                        validators=[agents.validators.validate_not_blank],
                    ),
                ),
                (
                    "documentation_url",
                    models.URLField(
                        blank=True,
                        help_text="Where people read more.",
                        validators=[django.core.validators.URLValidator(schemes=["http", "https"])],
                    ),
                ),
                (
                    "icon_url",
                    models.URLField(
                        blank=True,
                        help_text="A square picture.",
                        validators=[django.core.validators.URLValidator(schemes=["http", "https"])],
                    ),
                ),
                (
                    "provider_organization",
                    models.CharField(blank=True, help_text="Who offers the agent. Needs the URL too.", max_length=200),
                ),
                (
                    "provider_url",
                    models.URLField(
                        blank=True,
                        help_text="Web site of the organization.",
                        validators=[django.core.validators.URLValidator(schemes=["http", "https"])],
                    ),
                ),
                (
                    "default_input_modes",
                    models.JSONField(
                        default=agents.models.text_modes,
                        help_text="Media types that the agent takes, such as text/plain, image/* or */*. Others are refused.",
                        validators=[agents.validators.validate_media_types],
                    ),
                ),
                (
                    "default_output_modes",
                    models.JSONField(
                        default=agents.models.text_modes,
                        help_text="Media types that the agent gives, such as text/plain.",
                        validators=[agents.validators.validate_media_types],
                    ),
                ),
                (
                    "streaming",
                    models.BooleanField(
                        default=True, help_text="Callers may stream (SendStreamingMessage, SubscribeToTask)."
                    ),
                ),
                (
                    "push_notifications",
                    models.BooleanField(
                        default=True,
                        help_text="Callers may have the host tell a webhook of the changes of their tasks.",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("python", "Python class"), ("simulator", "Simulator")],
                        default="python",
                        max_length=20,
                    ),
                ),
                (
                    "executor",
                    models.CharField(
                        help_text="Dotted path of an AgentExecutor class, such as package.module.Class, or the name of a simulator, such as echo. It is tried out when you save.",
                        max_length=200,
                    ),
                ),
                (
                    "execution",
                    models.CharField(
                        choices=[("web", "Web process"), ("worker", "Celery worker")],
                        default="web",
                        help_text="Quick agents that only wait (await) run in the web process. Those that compute or block belong in a worker.",
                        max_length=10,
                    ),
                ),
                (
                    "timeout_seconds",
                    models.PositiveIntegerField(
                        default=3600,
                        help_text="A run that takes longer FAILS its task. In seconds, at most 7 days.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(604800),
                        ],
                    ),
                ),
                (
                    "cancel_grace_seconds",
                    models.PositiveIntegerField(
                        default=5,
                        help_text="How long a cancelled run may take to say CANCELED itself. In seconds, at most 300.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(300),
                        ],
                    ),
                ),
                (
                    "max_request_bytes",
                    models.PositiveIntegerField(
                        default=8388608,
                        help_text="Largest request body, in bytes: 1024 (1 KiB) to 268435456 (256 MiB).",
                        validators=[
                            django.core.validators.MinValueValidator(1024),
                            django.core.validators.MaxValueValidator(268435456),
                        ],
                    ),
                ),
                (
                    "open",
                    models.BooleanField(
                        default=False, help_text="Anonymous callers are served. Otherwise an API key is needed."
                    ),
                ),
                (
                    "shared_history",
                    models.BooleanField(
                        default=False,
                        help_text="Anonymous callers share one history, so they may list tasks. Otherwise they reach a task by its id only.",
                    ),
                ),
                (
                    "idempotent_sends",
                    models.BooleanField(
                        default=True, help_text="The same messageId sent twice by one caller gives one task."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        help_text="What you call this key.",
                        max_length=100,
                        unique=True,
                        validators=[agents.validators.validate_not_blank],
                    ),
                ),
                (
                    "owner",
                    models.CharField(
                        blank=True,
                        help_text="The principal that this key speaks for; the name of the key if you leave it empty. Keys with one owner see the same tasks.",
                        max_length=100,
                    ),
                ),
                ("prefix", models.CharField(editable=False, max_length=16)),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("enabled", models.BooleanField(default=True, help_text="A disabled key is refused.")),
                (
                    "expires_at",
                    models.DateTimeField(blank=True, help_text="Refused from then on. Empty: never.", null=True),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(blank=True, editable=False, help_text="To the minute.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "API key",
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("owner__in", ["", "anonymous"]), _negated=True),
                        name="agents_apikey_not_anonymous",
                        violation_error_message="An API key needs an owner other than anonymous.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Skill",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField(default=0, help_text="Order on the card, smallest first.")),
                (
                    "skill_id",
                    models.CharField(
                        help_text="Unique in this agent, such as order-status.",
                        max_length=100,
                        validators=[agents.validators.validate_not_blank],
                        verbose_name="id",
                    ),
                ),
                ("name", models.CharField(max_length=200, validators=[agents.validators.validate_not_blank])),
                ("description", models.TextField(validators=[agents.validators.validate_not_blank])),
                (
                    "tags",
                    models.JSONField(
                        default=list, help_text="Keywords, at least one.", validators=[agents.validators.validate_texts]
                    ),
                ),
                (
                    "examples",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Messages that this skill answers.",
                        validators=[agents.validators.validate_texts],
                    ),
                ),
                (
                    "input_modes",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Media types instead of the agent's. The agent takes what any of its skills takes.",
                        validators=[agents.validators.validate_media_types],
                    ),
                ),
                (
                    "output_modes",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Media types instead of the agent's.",
                        validators=[agents.validators.validate_media_types],
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="skills", to="agents.agent"
                    ),
                ),
            ],
            options={
                "ordering": ["position", "id"],
                "constraints": [models.UniqueConstraint(fields=("agent", "skill_id"), name="agents_skill_once")],
            },
        ),
    ]
