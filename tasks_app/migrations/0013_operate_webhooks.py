"""Who may do something to webhooks by hand."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0012_erasures")]

    operations = [
        migrations.AlterModelOptions(
            name="pushconfig",
            options={
                "permissions": [("operate_webhook", "Can pause, enable and test webhooks, and send events again")]
            },
        ),
    ]
