"""The rows that the benchmark lists are rows as the host itself would have written them."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from django.db import connection

from agents.models import Agent
from benchmarks.databases import HERE
from tasks_app.models import Event, Message, Task, TaskCount

ROWS = 60
CONTENTS = 10


@pytest.fixture
def agent(db: None) -> Agent:
    """An agent with seeded tasks, beside one without."""
    agent = Agent.objects.create(slug="bench-many", name="Many", description="Owns many tasks.")
    Agent.objects.create(slug="other", name="Other", description="Owns none.")
    with connection.cursor() as cursor:
        cursor.execute((HERE / "seed_host.sql").read_text(), {"rows": ROWS, "slug": agent.slug})
        cursor.execute((HERE / "seed_host_contents.sql").read_text(), {"rows": CONTENTS, "slug": agent.slug})
    return agent


def test_tasks_are_completed_and_counted(agent: Agent) -> None:
    tasks = list(Task.objects.order_by("created_at"))
    assert len(tasks) == ROWS
    assert {(t.agent_id, t.owner, t.state) for t in tasks} == {(agent.pk, "anonymous", 3)}
    assert {(b.created_at - a.created_at).total_seconds() for a, b in pairwise(tasks)} == {30.0}
    assert [t.id for t in tasks] == sorted(t.id for t in tasks)
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", t.id) for t in tasks)
    newest = tasks[-1]
    printed = f"{newest.status_at:%Y-%m-%dT%H:%M:%S}.000Z"
    assert newest.status == f'{{"state":"TASK_STATE_COMPLETED","timestamp":"{printed}"}}'
    counts = TaskCount.objects.filter(agent_id=agent.pk, owner="anonymous").values_list("state", "tasks")
    assert sum(tasks for _, tasks in counts) == ROWS
    assert {state for state, _ in counts} == {3}


def test_the_newest_tasks_have_their_message_and_events(agent: Agent) -> None:
    newest = list(Task.objects.order_by("-created_at")[:CONTENTS])
    assert set(Message.objects.values_list("task_id", "position")) == {(t.id, 1) for t in newest}
    assert set(Event.objects.values_list("task_id", "seq")) == {(t.id, seq) for t in newest for seq in (1, 2, 3)}
    assert Event.objects.get(task=newest[0], seq=newest[0].last_seq).body == newest[0].status
