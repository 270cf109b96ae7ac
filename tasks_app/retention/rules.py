"""How long tasks are kept: the fields keep_*_days of agents, as rules that each name one state of one agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from protocol.states import TaskState

# An exchange that was answered with a Message (state 0, §3.1.1) is over when it was answered, as a COMPLETED task is.
RULES = """SELECT a.id, a.slug, r.state, r.days FROM agents_agent a
    CROSS JOIN LATERAL (VALUES (3, a.keep_completed_days), (0, a.keep_completed_days), (4, a.keep_failed_days),
        (5, a.keep_canceled_days), (7, a.keep_rejected_days)) AS r(state, days)
    WHERE r.days IS NOT NULL AND (%(slug)s::text IS NULL OR a.slug = %(slug)s) ORDER BY a.slug, r.state"""
"""Rows for `read_rules`: of the agent `slug`, or of all if it is None."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Tasks of an agent in a state are kept for so many days after they came into it."""

    agent_id: int
    slug: str
    state: TaskState
    days: int

    @property
    def label(self) -> str:
        """The state as people read it."""
        if self.state is TaskState.UNSPECIFIED:
            return "Direct reply"
        return self.state.removeprefix("TASK_STATE_").capitalize()

    def cutoff(self, now: datetime) -> datetime:
        """What came into the state before this goes."""
        return now - timedelta(days=self.days)


def read_rules(rows: Iterable[tuple[Any, ...]]) -> list[Rule]:
    """Rules of rows of RULES."""
    return [Rule(agent_id, slug, TaskState.from_number(state), days) for agent_id, slug, state, days in rows]
