"""The admin of tasks: one module per table."""

from __future__ import annotations

from tasks_app.admin.audit import AuditEntryAdmin

__all__ = ["AuditEntryAdmin"]
