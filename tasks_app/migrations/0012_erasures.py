"""Erasures that were asked for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0011_confirmed_files")]

    operations = [
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("requested_by", models.CharField(help_text="User name, or the command.", max_length=150)),
                ("requested_at", models.DateTimeField(auto_now_add=True)),
                ("owner", models.CharField(blank=True, max_length=120)),
                ("agent", models.CharField(blank=True, help_text="Slug; empty: every agent.", max_length=63)),
                ("context_id", models.CharField(blank=True, max_length=255)),
                (
                    "with_keys",
                    models.BooleanField(db_default=False, default=False, help_text="The owner's API keys go too."),
                ),
                ("reference", models.CharField(max_length=40)),
                (
                    "tasks",
                    models.BigIntegerField(db_default=0, default=0, help_text="Tasks that are gone so far."),
                ),
                (
                    "problem",
                    models.TextField(blank=True, db_default="", help_text="Why the last try did not get to the end."),
                ),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={"ordering": ["-id"]},
        ),
    ]
