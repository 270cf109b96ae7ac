"""The admin of the audit log: read and searched, never changed."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from agents.admin_base import ModelAdmin, display
from tasks_app.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(ModelAdmin[AuditEntry]):
    """What people did to tasks, the newest first."""

    list_display = ("at", "actor", "action", "agent", "task", "detail")
    list_display_links = None
    list_filter = ("action", "actor", "agent")
    search_fields = ("=task_id", "actor", "detail")
    date_hierarchy = "at"
    list_per_page = 100

    @display(description="Task")
    def task(self, entry: AuditEntry) -> str:
        """A link to the task's page."""
        if not entry.task_id:
            return ""
        return format_html('<a href="{}">{}</a>', reverse("task", args=[entry.task_id]), entry.task_id)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Acts make entries."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """Nobody edits them."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """Nor takes them back."""
        return False
