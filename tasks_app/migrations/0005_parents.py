"""An index of delegated tasks, built while the host writes."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tasks_app", "0004_reliability")]

    operations = [
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                condition=models.Q(("parent_id__isnull", False)), fields=["parent_id"], name="task_parent"
            ),
        ),
    ]
