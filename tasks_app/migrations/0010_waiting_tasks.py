"""An index of tasks that wait for an answer, built while the host writes."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tasks_app", "0009_processes")]

    operations = [
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                condition=models.Q(("state__in", [6, 8])), fields=["agent", "status_at"], name="task_waiting"
            ),
        ),
    ]
