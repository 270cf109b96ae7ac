"""Records of runs and deliveries, deadlines, parts in files, the audit log. Every column has a default in the database."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0005_recovery_and_retention"),
        ("tasks_app", "0003_push_configs"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("actor", models.CharField(help_text="User name, or the command that did it.", max_length=150)),
                (
                    "action",
                    models.CharField(help_text="Such as task.approve, webhook.redeliver, data.erase.", max_length=50),
                ),
                ("agent", models.CharField(blank=True, help_text="Slug.", max_length=63)),
                ("task_id", models.CharField(blank=True, max_length=36)),
                (
                    "detail",
                    models.TextField(blank=True, help_text="What was done, in words, without content of callers."),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="tasks_app.task",
                    ),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("config_id", models.CharField(max_length=255)),
                ("seq", models.IntegerField(help_text="The event that was sent.")),
                ("attempt", models.IntegerField(help_text="From 1, counted anew for each event.")),
                ("at", models.DateTimeField(help_text="When the attempt began.")),
                ("duration_ms", models.IntegerField()),
                ("status", models.SmallIntegerField(help_text="HTTP status, null without an answer.", null=True)),
                (
                    "error",
                    models.TextField(blank=True, help_text="Why it does not count as delivered; empty if it does."),
                ),
                ("response", models.TextField(blank=True, help_text="The beginning of the answer.")),
                ("next_at", models.DateTimeField(help_text="When it is tried again.", null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Execution",
            fields=[
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="executions",
                        to="tasks_app.task",
                    ),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "task_id", "attempt", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("attempt", models.IntegerField()),
                ("worker", models.CharField(help_text="The process that it ran in.", max_length=100)),
                ("started_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(help_text="How long its last heartbeat was good for.", null=True)),
                ("ended_at", models.DateTimeField()),
                (
                    "state",
                    models.SmallIntegerField(
                        choices=[
                            (0, "UNSPECIFIED"),
                            (1, "SUBMITTED"),
                            (2, "WORKING"),
                            (3, "COMPLETED"),
                            (4, "FAILED"),
                            (5, "CANCELED"),
                            (6, "INPUT_REQUIRED"),
                            (7, "REJECTED"),
                            (8, "AUTH_REQUIRED"),
                        ],
                        help_text="The task's state when the run had ended.",
                    ),
                ),
                (
                    "fenced",
                    models.BooleanField(
                        help_text="Whether somebody else ended it and nothing that it says counts any more."
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StoredPart",
            fields=[
                ("id", models.CharField(max_length=36, primary_key=True, serialize=False)),
                ("task_id", models.CharField(max_length=36)),
                ("name", models.CharField(help_text="Its name in the storage.", max_length=255)),
                ("size", models.BigIntegerField(help_text="In bytes, as the file has them.")),
                ("digest", models.CharField(help_text="SHA-256 of these bytes, in hexadecimal digits.", max_length=64)),
                ("media_type", models.TextField(blank=True)),
                ("filename", models.TextField(blank=True, help_text="As the part says it.")),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name="pushconfig",
            name="disabled_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="pushconfig",
            name="failing_since",
            field=models.DateTimeField(help_text="When the first of them was made.", null=True),
        ),
        migrations.AddField(
            model_name="pushconfig",
            name="paused_at",
            field=models.DateTimeField(help_text="Since when a person has stopped the deliveries.", null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="deadline_at",
            field=models.DateTimeField(help_text="When the newest turn has to have ended, by its caller.", null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="has_stored_parts",
            field=models.BooleanField(db_default=False, help_text="Whether parts of it are kept in files."),
        ),
        migrations.AddField(
            model_name="task",
            name="retries",
            field=models.SmallIntegerField(
                db_default=0, help_text="Runs of the newest turn that were lost and repeated."
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="started_at",
            field=models.DateTimeField(help_text="When that process began.", null=True),
        ),
        migrations.AlterField(
            model_name="task",
            name="parent_id",
            field=models.CharField(help_text="The task whose agent delegated this one.", max_length=36, null=True),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("task_id", ""), _negated=True), fields=["task_id"], name="audit_of_task"
            ),
        ),
        migrations.AddField(
            model_name="storedpart",
            name="agent",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="agents.agent",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["task", "config_id", "-id"], name="delivery_of_config"),
        ),
        migrations.AddIndex(
            model_name="storedpart",
            index=models.Index(fields=["task_id"], name="stored_part_of_task"),
        ),
        migrations.AddIndex(
            model_name="storedpart",
            index=models.Index(fields=["agent"], include=("size",), name="stored_part_of_agent"),
        ),
    ]
