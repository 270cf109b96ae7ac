"""The journal: the only writer of tasks. See `writer` for how it batches, `statement` for what it sends."""

from __future__ import annotations

from tasks_app.journal.changes import Acceptance, AuditLine, Change, Creation
from tasks_app.journal.writer import Journal

__all__ = ["Acceptance", "AuditLine", "Change", "Creation", "Journal"]
