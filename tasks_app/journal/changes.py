"""What can be asked of the journal: a task's creation, or a change that builds on a known version of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from protocol.states import TaskState
from tasks_app.push.config import StoredConfig
from tasks_app.tables.record import Event, HistoryEntry


@dataclass(slots=True)
class Acceptance:
    """A message taken from a caller, so that the same one sent again is recognised."""

    agent_id: int
    owner: str
    message_id: str
    digest: str


@dataclass(slots=True)
class AuditLine:
    """A line of the audit log that is stored with a change or not at all: what a person has done by it."""

    actor: str
    action: str
    agent: str
    detail: str


@dataclass(slots=True)
class Creation:
    """A new task with its first message. Lost if its acceptance exists already.

    `parent_id` is the task whose agent delegated it. `deadline_at` is when its first turn has to have ended.
    """

    task_id: str
    agent_id: int
    owner: str
    context_id: str
    status: str
    created_at: datetime
    message: HistoryEntry
    dialect: str
    request: str
    worker: str | None
    acceptance: Acceptance | None
    done: asyncio.Future[bool]
    push_config: StoredConfig | None = None
    metadata: str | None = None
    has_stored_parts: bool = False
    parent_id: str | None = None
    deadline_at: datetime | None = None


@dataclass(slots=True)
class Change:
    """The next version of a task. Lost if the row is not at `version`, `attempt` and `old_state` any more.

    `new_attempt` fences off whoever wrote under `attempt` when it is higher. `request` and `deadline_at` None keep what
    is stored. With `if_unheld` it is lost too while the lease of the task holds, and refused as creations are where the
    database takes nothing for some seconds: leases are over then that nobody could extend.
    `stored` is called with the outcome before the events are published, so that who asked never lags behind a reader:
    won or lost, or None for a write that the database refuses to take. `has_push_configs` is known once it is won.
    `has_stored_parts` says that parts of it are kept in files.
    """

    task_id: str
    version: int
    attempt: int
    old_state: TaskState
    state: TaskState
    status: str
    status_at: datetime
    metadata: str | None
    last_seq: int
    message_count: int
    new_attempt: int
    worker: str | None
    done: asyncio.Future[bool]
    request: str | None = None
    deadline_at: datetime | None = None
    acceptance: Acceptance | None = None
    events: list[Event] = field(default_factory=list)
    messages: list[HistoryEntry] = field(default_factory=list)
    stored: Callable[[bool | None], None] | None = None
    push_config: StoredConfig | None = None
    has_push_configs: bool = False
    has_stored_parts: bool = False
    audit: AuditLine | None = None
    if_unheld: bool = False
