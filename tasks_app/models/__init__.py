"""The tables of tasks. Django owns schema, admin and reading; `journal` alone writes tasks.

Bodies are `text` holding the JSON that is sent, not `jsonb`: U+0000 and numbers survive, and replies are spliced
from stored text. No foreign key is a constraint in the database: the journal writes rows in the
same statement that proves their task, and checking each again would cost a good part of its speed.
"""

from __future__ import annotations

from tasks_app.models.audit import AuditEntry
from tasks_app.models.erasure import Erasure
from tasks_app.models.execution import Execution
from tasks_app.models.process import Process
from tasks_app.models.push import Delivery, PushConfig
from tasks_app.models.stored_part import StoredPart
from tasks_app.models.task import Event, Message, Receipt, Task, TaskCount

__all__ = [
    "AuditEntry",
    "Delivery",
    "Erasure",
    "Event",
    "Execution",
    "Message",
    "Process",
    "PushConfig",
    "Receipt",
    "StoredPart",
    "Task",
    "TaskCount",
]
