import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_announce"),
        ("tasks_app", "0002_count_tasks"),
    ]

    operations = [
        migrations.AddField(
            model_name="task",
            name="has_push_configs",
            field=models.BooleanField(db_default=False, help_text="Whether there ever was a push config."),
        ),
        migrations.AddField(
            model_name="task",
            name="push_due_at",
            field=models.DateTimeField(help_text="Since when events wait to be noted for push configs.", null=True),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("push_due_at__isnull", False)), fields=["push_due_at"], name="task_push_due"
            ),
        ),
        migrations.CreateModel(
            name="PushConfig",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "task_id", "config_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("config_id", models.CharField(max_length=255)),
                ("url", models.TextField()),
                ("token", models.TextField(blank=True, help_text="Encrypted; empty for none.")),
                ("scheme", models.TextField(blank=True, help_text="Authentication scheme, such as Bearer.")),
                ("credentials", models.TextField(blank=True, help_text="Encrypted; empty for none.")),
                (
                    "version",
                    models.CharField(
                        help_text="Version of the protocol that it is told in, such as 1.0.", max_length=8
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("cursor", models.IntegerField()),
                ("last_seq", models.IntegerField()),
                ("due_at", models.DateTimeField(null=True)),
                ("claim", models.IntegerField(db_default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "attempts",
                    models.IntegerField(db_default=0, help_text="Failed attempts since the last delivery."),
                ),
                ("last_error", models.TextField(blank=True, db_default="")),
                (
                    "disabled_reason",
                    models.TextField(blank=True, db_default="", help_text="Why nothing is delivered any more."),
                ),
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="push_configs",
                        to="tasks_app.task",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="pushconfig",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="push_config_due"
            ),
        ),
    ]
