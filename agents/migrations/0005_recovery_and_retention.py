"""What becomes of lost runs, late answers, old tasks and big parts. Every column has a default in the database."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0004_usage"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="answer_within_seconds",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="A task that has waited this long for input or authorization FAILS. In seconds, at most 365 days; empty: it waits for ever.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(31536000),
                ],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="deadline_seconds",
            field=models.PositiveIntegerField(
                db_default=86400,
                default=86400,
                help_text="A message that has not been dealt with this long after it was accepted FAILS its task, time in the queue and repeated runs included. In seconds, at most 30 days.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(2592000),
                ],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="keep_canceled_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="How many days a CANCELED task is kept. Empty: for ever.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="keep_completed_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="How many days a COMPLETED task is kept. Empty: for ever.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="keep_failed_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="How many days a FAILED task is kept. Empty: for ever.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="keep_rejected_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="How many days a REJECTED task is kept. Empty: for ever.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="large_parts",
            field=models.CharField(
                choices=[("inline", "In the answer, as they came"), ("url", "As signed URLs")],
                db_default="inline",
                default="inline",
                help_text="How callers are given parts that are kept in files because of their size.",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="max_retries",
            field=models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                help_text="How often a run is repeated whose process died. Only for executors that say `repeatable = True`: what such a run had done already is done again.",
                validators=[django.core.validators.MaxValueValidator(20)],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="max_stored_bytes",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="Most bytes in files of all tasks of the agent. In bytes; empty: no limit.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1024)],
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="max_task_bytes",
            field=models.PositiveBigIntegerField(
                db_default=1073741824,
                default=1073741824,
                help_text="Most bytes in files of one task. In bytes.",
                validators=[django.core.validators.MinValueValidator(1024)],
            ),
        ),
    ]
