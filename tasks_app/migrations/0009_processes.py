"""Processes as they are heard, and what the columns of runs say."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0008_answers")]

    operations = [
        migrations.CreateModel(
            name="Process",
            fields=[
                (
                    "origin",
                    models.CharField(
                        help_text="Role, machine, pid, and a part by chance.",
                        max_length=100,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("role", models.CharField(help_text="web or worker: the agents whose code runs there.", max_length=10)),
                ("started_at", models.DateTimeField()),
                ("until", models.DateTimeField(help_text="How long its last heartbeat is good for.")),
                ("runs", models.IntegerField(help_text="Runs of agents that it had then.")),
            ],
        ),
        migrations.AlterField(
            model_name="execution",
            name="state",
            field=models.SmallIntegerField(
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
                help_text="The task's state when the run ended.",
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="deadline_at",
            field=models.DateTimeField(help_text="When the newest turn has to have ended.", null=True),
        ),
        migrations.AlterField(
            model_name="task",
            name="started_at",
            field=models.DateTimeField(help_text="When that process began to.", null=True),
        ),
        migrations.AlterField(
            model_name="task",
            name="worker",
            field=models.CharField(
                help_text="The process that runs the task, or did so last.", max_length=100, null=True
            ),
        ),
    ]
