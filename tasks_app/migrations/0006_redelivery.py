"""What a person may have sent again, and the limit of configs as a function."""

import django.contrib.postgres.fields
from django.db import migrations, models

# VOLATILE: it sees what has been committed when it is called, also in a statement that began before. A writer of configs
# changes the task's row and names this in the condition: who waited for the row is asked again.
_ROOM = """
CREATE FUNCTION tasks_app_push_room(task text, config text, most int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT count(*) < most OR count(*) FILTER (WHERE config_id = config) > 0
        FROM tasks_app_pushconfig WHERE task_id = task);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0005_parents")]

    operations = [
        migrations.AddField(
            model_name="delivery",
            name="kind",
            field=models.SmallIntegerField(
                choices=[(1, "Event"), (2, "Sent again"), (3, "Test")], db_default=1, default=1
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="seq",
            field=models.IntegerField(help_text="The event that was sent, 0 for a test."),
        ),
        migrations.AddField(
            model_name="pushconfig",
            name="resend",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.IntegerField(),
                blank=True,
                db_default=[],
                default=list,
                help_text="Events that a person wants sent again, by seq, out of order; 0 for a test.",
                size=None,
            ),
        ),
        migrations.RunSQL(_ROOM, "DROP FUNCTION tasks_app_push_room(text, text, int)"),
    ]
