"""Which files have been found to be named by their task: the others are looked at."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tasks_app", "0010_waiting_tasks")]

    operations = [
        migrations.AddField(
            model_name="storedpart",
            name="confirmed",
            field=models.BooleanField(
                db_default=False, help_text="Whether it was found to be named by its task, a day after it was stored."
            ),
        ),
        AddIndexConcurrently(
            model_name="storedpart",
            index=models.Index(
                condition=models.Q(("confirmed", False)), fields=["created_at"], name="stored_part_unconfirmed"
            ),
        ),
    ]
