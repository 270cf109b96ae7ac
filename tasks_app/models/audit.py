"""Who did what to tasks by hand."""

from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """One act of a person: an answer out of band, a redelivery, an erasure. It outlives what it is about.

    Act and line are one transaction, or the line comes first and says what was asked for (a cancel).
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=150, help_text="User name, or the command that did it.")
    action = models.CharField(max_length=50, help_text="Such as task.approve, webhook.redeliver, data.erase.")
    agent = models.CharField(max_length=63, blank=True, help_text="Slug.")
    task_id = models.CharField(max_length=36, blank=True)
    detail = models.TextField(blank=True, help_text="What was done, in words, without content of callers.")

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["task_id"], name="audit_of_task", condition=~models.Q(task_id=""))]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.action}"
