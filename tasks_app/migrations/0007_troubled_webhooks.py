"""An index of the webhooks that fail or are stopped, built while the host writes."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tasks_app", "0006_redelivery")]

    operations = [
        AddIndexConcurrently(
            model_name="pushconfig",
            index=models.Index(
                fields=["-task_id", "-config_id"],
                name="push_config_troubled",
                condition=models.Q(
                    ("failing_since__isnull", False),
                    ("disabled_at__isnull", False),
                    ("paused_at__isnull", False),
                    _connector="OR",
                ),
            ),
        ),
    ]
