"""What is true of every task in the database at any time, whatever happened to it."""

from __future__ import annotations

import json
from typing import Any

from protocol.states import TERMINAL, TaskState, may_move
from tasks_app.tables.record import EventKind
from tests.tasks_app.world import World


async def check_everything(world: World) -> None:
    """Check every task and the counters."""
    for (task_id,) in await world.query("SELECT id FROM tasks_app_task"):
        await check_task(world, task_id)
    await check_counters(world)


async def check_task(world: World, task_id: str) -> None:
    """The log has no gaps, its states follow each other, at most one is terminal and it is the last; the row and its
    history agree with it."""
    record = await world.load(task_id)
    rows = await world.query("SELECT seq, kind, body FROM tasks_app_event WHERE task_id = %s ORDER BY seq", [task_id])
    assert [seq for seq, _, _ in rows] == list(range(1, record.last_seq + 1)), "seq 1..n without gaps"
    state, status = TaskState.SUBMITTED, None
    for _, kind, body in rows:
        assert state not in TERMINAL, "nothing follows a terminal event"
        if kind == EventKind.STATUS:
            new = TaskState(json.loads(body)["state"])
            assert may_move(state, new), f"{state} -> {new}"
            state, status = new, body
        elif kind == EventKind.MESSAGE:
            assert len(rows) == 1, "a Message is the whole answer"
            state = TaskState.UNSPECIFIED
        else:
            assert json.loads(body)["parts"], "no artifact without parts"
    assert record.state is state
    assert status is None or record.status == status
    positions = await world.query(
        "SELECT position, message_id FROM tasks_app_message WHERE task_id = %s ORDER BY position", [task_id]
    )
    assert [p for p, _ in positions] == list(range(1, record.message_count + 1)), "history without gaps"
    ids = [m for _, m in positions]
    assert len(set(ids)) == len(ids), "no message twice"


async def check_counters(world: World) -> None:
    """The counters say what counting says."""
    counted = await world.query("SELECT agent_id, owner, state, count(*) FROM tasks_app_task GROUP BY 1, 2, 3")
    summed = await world.query(
        "SELECT agent_id, owner, state, sum(tasks)::bigint FROM tasks_app_taskcount GROUP BY 1, 2, 3"
        " HAVING sum(tasks) <> 0"
    )
    assert sorted(summed) == sorted(counted)


async def events_of(world: World, task_id: str) -> list[tuple[Any, ...]]:
    """A task's log in short: (state without its prefix,) and (artifact id, texts, append, lastChunk)."""
    rows = await world.query(
        "SELECT kind, body, artifact_id, append, last_chunk FROM tasks_app_event WHERE task_id = %s ORDER BY seq",
        [task_id],
    )
    short: list[tuple[Any, ...]] = []
    for kind, body, artifact_id, append, last_chunk in rows:
        if kind == EventKind.ARTIFACT:
            texts = "".join(p["text"] for p in json.loads(body)["parts"])
            short.append((artifact_id, texts, append, last_chunk))
        elif kind == EventKind.STATUS:
            short.append((json.loads(body)["state"].removeprefix("TASK_STATE_"),))
        else:
            short.append(("MESSAGE",))
    return short


def said(status: str) -> str:
    """The text of a status's message, "" without one."""
    message = json.loads(status).get("message")
    return "".join(p["text"] for p in message["parts"]) if message else ""
