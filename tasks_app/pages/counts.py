"""How many tasks there are, from the counters: never by counting rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db.models import QuerySet, Sum

from tasks_app.models import TaskCount


def matching(agent_id: int | None, owner: str, states: Collection[int]) -> QuerySet[TaskCount]:
    """Counters of an agent, an owner and states; None and empty ones mean any."""
    rows = TaskCount.objects.all()
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    if owner:
        rows = rows.filter(owner=owner)
    if states:
        rows = rows.filter(state__in=states)
    return rows


def by_state(agent_id: int | None = None, owner: str = "") -> dict[int, int]:
    """Tasks of each state number; states without tasks are left out."""
    rows = matching(agent_id, owner, ()).values("state").annotate(n=Sum("tasks")).values_list("state", "n")
    return {state: n for state, n in rows if n}


def by_agent() -> dict[int, dict[int, int]]:
    """Tasks of each agent id and state number."""
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    rows = TaskCount.objects.values("agent_id", "state").annotate(n=Sum("tasks"))
    for agent_id, state, n in rows.values_list("agent_id", "state", "n"):
        if n:
            counts[agent_id][state] = n
    return counts


def owners(limit: int) -> list[str]:
    """At most `limit` owners that have tasks, in order."""
    rows = TaskCount.objects.values("owner").annotate(n=Sum("tasks")).filter(n__gt=0).order_by("owner")
    return list(rows.values_list("owner", flat=True)[:limit])
