"""Webhooks of tasks, and the ledger of what was sent to them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tasks_app.models.task import Task


class PushConfig(models.Model):
    """A webhook of a task (§4.3.1), and how far the log of the task has been delivered to it.

    `cursor` is the seq of the last event that the receiver took; what is between it and `last_seq` waits. `due_at` is
    when the next attempt may be made, null while nothing waits or may be sent. Who delivers holds `lease_until` under a
    raised `claim`; whatever is written under an older one is lost.
    """

    pk = models.CompositePrimaryKey("task_id", "config_id")
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, db_constraint=False, related_name="push_configs", db_index=False
    )
    config_id = models.CharField(max_length=255)
    url = models.TextField()
    token = models.TextField(blank=True, help_text="Encrypted; empty for none.")
    scheme = models.TextField(blank=True, help_text="Authentication scheme, such as Bearer.")
    credentials = models.TextField(blank=True, help_text="Encrypted; empty for none.")
    version = models.CharField(max_length=8, help_text="Version of the protocol that it is told in, such as 1.0.")
    created_at = models.DateTimeField()

    cursor = models.IntegerField()
    last_seq = models.IntegerField()
    due_at = models.DateTimeField(null=True)
    claim = models.IntegerField(db_default=0)
    lease_until = models.DateTimeField(null=True)
    attempts = models.IntegerField(db_default=0, help_text="Failed attempts since the last delivery.")
    failing_since = models.DateTimeField(null=True, help_text="When the first of them was made.")
    last_error = models.TextField(db_default="", blank=True)
    disabled_reason = models.TextField(db_default="", blank=True, help_text="Why nothing is delivered any more.")
    disabled_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True, help_text="Since when a person has stopped the deliveries.")
    resend: models.Field[list[int], list[int]] = ArrayField(
        models.IntegerField(),
        default=list,
        db_default=[],
        blank=True,
        help_text="Events that a person wants sent again, by seq, out of order; 0 for a test.",
    )

    class Meta:
        permissions = [("operate_webhook", "Can pause, enable and test webhooks, and send events again")]
        indexes = [
            models.Index(
                fields=["-task_id", "-config_id"],
                name="push_config_troubled",
                condition=models.Q(failing_since__isnull=False)
                | models.Q(disabled_at__isnull=False)
                | models.Q(paused_at__isnull=False),
            ),
            models.Index(fields=["due_at"], name="push_config_due", condition=models.Q(due_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} {self.config_id}"


class Delivery(models.Model):
    """One attempt to tell a webhook of an event: what was tried, and what came of it. It outlives its config."""

    class Kind(models.IntegerChoices):
        EVENT = 1, "Event"
        AGAIN = 2, "Sent again"
        TEST = 3, "Test"

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, db_constraint=False, related_name="deliveries", db_index=False
    )
    config_id = models.CharField(max_length=255)
    kind = models.SmallIntegerField(choices=Kind.choices, default=Kind.EVENT, db_default=Kind.EVENT)
    seq = models.IntegerField(help_text="The event that was sent, 0 for a test.")
    attempt = models.IntegerField(help_text="From 1, counted anew for each event.")
    at = models.DateTimeField(help_text="When the attempt began.")
    duration_ms = models.IntegerField()
    status = models.SmallIntegerField(null=True, help_text="HTTP status, null without an answer.")
    error = models.TextField(blank=True, help_text="Why it does not count as delivered; empty if it does.")
    response = models.TextField(blank=True, help_text="The beginning of the answer.")
    next_at = models.DateTimeField(null=True, help_text="When it is tried again.")

    class Meta:
        indexes = [models.Index(fields=["task", "config_id", "-id"], name="delivery_of_config")]

    def __str__(self) -> str:
        return f"{self.task_id} {self.config_id} #{self.seq}.{self.attempt}"
