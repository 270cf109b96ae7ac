"""What an erasure is about, and finding it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.crypto import salted_hmac

from agents.models import Agent
from protocol.states import INTERRUPTED, RUNNING
from tasks_app.models import Erasure
from tasks_app.retention.deleting import ENDED

UNFINISHED = sorted(s.number for s in RUNNING | INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything of `owner`, of one agent (slug) or context only if these are given; or one context of an agent, of
    whoever it is. Empty members do not narrow."""

    owner: str = ""
    agent: str = ""
    context_id: str = ""

    @classmethod
    def of(cls, erasure: Erasure) -> Scope:
        """What is to be erased."""
        return cls(erasure.owner, erasure.agent, erasure.context_id)

    def check(self) -> None:
        """Raises ValidationError, naming the field, for a scope that would take too much or cannot be right."""
        if not self.owner and not self.context_id:
            raise ValidationError({"owner": "Say whose data, or which context of which agent."})
        if self.context_id and not self.agent:
            raise ValidationError({"agent": "A context belongs to an agent: say which."})
        if self.agent and not Agent.objects.filter(slug=self.agent).exists():
            raise ValidationError({"agent": f"There is no agent {self.agent}."})
        if "\0" in self.owner + self.context_id:
            raise ValidationError({"owner": "A name has no null characters."})

    @property
    def is_person(self) -> bool:
        """Whether all of a principal goes, so that keys, counters and receipts go too."""
        return bool(self.owner) and not self.agent

    @property
    def typed(self) -> str:
        """What a person types to confirm."""
        return self.context_id or self.owner

    @property
    def reference(self) -> str:
        """Tells this scope from others and does not say which it is: a keyed hash, by the host's SECRET_KEY."""
        parts = "\0".join([self.owner, self.agent, self.context_id])
        kind = "principal" if self.is_person else "context" if self.context_id else "principal of an agent"
        return f"{kind} {salted_hmac('a2a.erasure', parts, algorithm='sha256').hexdigest()[:12]}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """For the statements of `tasks_sql`."""
        return {
            "owner": self.owner,
            "agent": self.agent,
            "context": self.context_id,
            "unfinished": UNFINISHED,
            "ended": sorted(ENDED),
        }

    def tasks_sql(self, states: str, columns: str) -> str:
        """SELECT of tasks in the states of a parameter, `unfinished` or `ended`; it ends in a WHERE clause.

        Indexes: task_list_context with a context, else task_list_state, by way of the owners that the counters know.
        """
        by_owner = "AND c.owner = %(owner)s" if self.owner else ""
        by_agent = "AND a.slug = %(agent)s" if self.agent else ""
        by_context = "AND t.context_id = %(context)s" if self.context_id else ""
        return f"""SELECT {columns} FROM agents_agent a
            CROSS JOIN LATERAL (SELECT DISTINCT owner FROM tasks_app_taskcount c
                WHERE c.agent_id = a.id {by_owner}) AS o
            CROSS JOIN LATERAL unnest(%({states})s::smallint[]) AS s(state)
            JOIN tasks_app_task t ON t.agent_id = a.id AND t.owner = o.owner AND t.state = s.state {by_context}
            WHERE true {by_agent}"""

    def family_sql(self, states: str) -> str:
        """Ids and states of such tasks, and of what they have delegated: that is of the same data. With a limit."""
        found = f"{self.tasks_sql(states, 't.id, t.state')} LIMIT %(limit)s"
        return f"""WITH RECURSIVE family AS (
                SELECT * FROM ({found}) AS found
                UNION SELECT child.id, child.state FROM tasks_app_task child JOIN family ON child.parent_id = family.id
            ) SELECT id, state FROM family"""
