"""The journal: the only writer of what callers see of a task. See `writer` for how it batches, `statement` for what it
sends, `leases` for what it writes of runs alone."""

from __future__ import annotations

from tasks_app.journal.changes import Acceptance, AuditLine, Change, Creation
from tasks_app.journal.writer import Journal

__all__ = ["Acceptance", "AuditLine", "Change", "Creation", "Journal"]
