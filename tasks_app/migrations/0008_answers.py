"""Runs that wait in their process, an index of unfinished delegated tasks, and who may answer tasks."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tasks_app", "0007_troubled_webhooks")]

    operations = [
        migrations.AlterModelOptions(
            name="task",
            options={"permissions": [("answer_task", "Can answer waiting tasks and cancel tasks")]},
        ),
        migrations.AddField(
            model_name="task",
            name="waiting_attempt",
            field=models.IntegerField(
                help_text="The run that waits in its process for the next message, if its lease holds.", null=True
            ),
        ),
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                condition=models.Q(("parent_id__isnull", False), ("state__in", [1, 2, 6, 8])),
                fields=["parent_id"],
                name="task_open_child",
            ),
        ),
    ]
