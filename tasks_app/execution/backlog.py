"""What waits to be run, what runs and what waits for its callers: for the page of the queue and `manage.py queue`.

Counted in the index of unfinished tasks, and of waiting ones: what has ended costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Q, QuerySet

from protocol.states import INTERRUPTED, RUNNING
from tasks_app.models import Process, Task

SOON = timedelta(minutes=5)
"""How long before its end a task is listed among those that are about to be FAILED."""
LISTED = 20
_STATES = {
    "running": ", ".join(str(state.number) for state in sorted(RUNNING)),
    "waiting": ", ".join(str(state.number) for state in sorted(INTERRUPTED)),
}
_COUNT = """SELECT a.slug, a.execution, coalesce(u.queued, 0), coalesce(u.running, 0), coalesce(w.waiting, 0),
        u.oldest_queued, u.oldest_running, w.oldest_waiting
    FROM agents_agent a
    LEFT JOIN (SELECT agent_id, count(*) FILTER (WHERE worker IS NULL) AS queued,
            count(*) FILTER (WHERE worker IS NOT NULL) AS running,
            min(status_at) FILTER (WHERE worker IS NULL) AS oldest_queued, min(started_at) AS oldest_running
        FROM tasks_app_task WHERE state IN ({running}) GROUP BY agent_id) u ON u.agent_id = a.id
    LEFT JOIN (SELECT agent_id, count(*) AS waiting, min(status_at) AS oldest_waiting
        FROM tasks_app_task WHERE state IN ({waiting}) GROUP BY agent_id) w ON w.agent_id = a.id
    WHERE u.agent_id IS NOT NULL OR w.agent_id IS NOT NULL
    ORDER BY coalesce(u.queued, 0) DESC, a.slug""".format(**_STATES)


@dataclass(slots=True)
class AgentQueue:
    """The unfinished tasks of an agent. The times are since when the oldest of its kind is as it is."""

    slug: str
    execution: str
    queued: int
    running: int
    waiting: int
    oldest_queued: datetime | None
    oldest_running: datetime | None
    oldest_waiting: datetime | None


@dataclass(slots=True)
class Doomed:
    """A task that is about to be FAILED, and why."""

    task: Task
    reason: str
    at: datetime


@dataclass(slots=True)
class Backlog:
    """As of one moment, `at`."""

    at: datetime
    agents: list[AgentQueue]
    processes: list[Process]
    doomed: list[Doomed]

    @property
    def queued(self) -> int:
        """Tasks that wait to be run."""
        return sum(agent.queued for agent in self.agents)

    @property
    def oldest_queued(self) -> datetime | None:
        """Since when the one that has waited longest does so."""
        return min((agent.oldest_queued for agent in self.agents if agent.oldest_queued), default=None)


def read_backlog() -> Backlog:
    """What there is now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")  # Leases and heartbeats are by the clock of the database.
        ((at,),) = cursor.fetchall()
        cursor.execute(_COUNT)
        agents = [AgentQueue(*row) for row in cursor.fetchall()]
    return Backlog(at, agents, list(Process.objects.order_by("role", "started_at", "origin")), _doomed(at))


def _doomed(at: datetime) -> list[Doomed]:
    running = _tasks(state__in=[s.number for s in RUNNING])
    lost = running.filter(worker__isnull=False, lease_until__lt=at).order_by("lease_until")
    overdue = running.filter(deadline_at__lt=at + SOON).order_by("deadline_at")
    waiting = _tasks(state__in=[s.number for s in INTERRUPTED], agent__answer_within_seconds__isnull=False)
    limit = ExpressionWrapper(F("agent__answer_within_seconds") * timedelta(seconds=1), DurationField())
    end = ExpressionWrapper(F("status_at") + limit, DateTimeField())
    unanswered: QuerySet[Any] = waiting.annotate(end=end).filter(end__lt=at + SOON).order_by("end")
    doomed = {task.pk: Doomed(task, "Nobody has answered it.", task.end) for task in unanswered[:LISTED]}
    doomed |= {task.pk: Doomed(task, "Its deadline.", task.deadline_at or at) for task in overdue[:LISTED]}
    for task in lost[:LISTED]:
        doomed[task.pk] = Doomed(task, f"Its process {task.worker} is silent.", task.lease_until or at)
    return sorted(doomed.values(), key=lambda entry: entry.at)[:LISTED]


def _tasks(**filters: Any) -> QuerySet[Task]:
    return Task.objects.filter(Q(**filters)).select_related("agent").defer("request", "status", "metadata")
