"""Reads the database, and what a receiver kept, for the auditor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg

from protocol.states import TaskState
from protocol.stored_part import PREFIX
from tasks_app.content.storage import name_of
from tests.chaos.books import Arrival, Arrivals, Item, Stored, StoredTask, artifact_item, item_of, status_item
from tests.support.receiver import Receiver

_TASKS = """SELECT t.id, a.slug, t.state, t.last_seq, t.attempt FROM tasks_app_task t
    JOIN agents_agent a ON a.id = t.agent_id WHERE t.owner = %s"""
_EVENTS = """SELECT e.task_id, e.seq, e.kind, e.body, e.append, e.attempt FROM tasks_app_event e
    JOIN tasks_app_task t ON t.id = e.task_id WHERE t.owner = %s ORDER BY e.task_id, e.seq"""
_RUNS = """SELECT x.task_id, x.attempt FROM tasks_app_execution x JOIN tasks_app_task t ON t.id = x.task_id
    WHERE t.owner = %s"""
_MESSAGES = """SELECT m.message_id, m.task_id FROM tasks_app_message m JOIN tasks_app_task t ON t.id = m.task_id
    WHERE t.owner = %s AND m.role = 1"""
_WAITING = """SELECT p.task_id FROM tasks_app_pushconfig p JOIN tasks_app_task t ON t.id = p.task_id
    WHERE p.cursor < t.last_seq AND t.owner = %s"""
_COUNTED = """SELECT a.slug, t.owner, t.state, count(*) FROM tasks_app_task t
    JOIN agents_agent a ON a.id = t.agent_id GROUP BY 1, 2, 3"""
_COUNTERS = """SELECT a.slug, c.owner, c.state, sum(c.tasks)::bigint FROM tasks_app_taskcount c
    JOIN agents_agent a ON a.id = c.agent_id GROUP BY 1, 2, 3 HAVING sum(c.tasks) <> 0"""


def read_stored(connection: psycopg.Connection, owner: str, files: Path) -> Stored:
    """All tasks of a principal as they are now, and the counters of everybody, of one moment.

    `files` is the folder of the parts that are not in bodies.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        stored = Stored()
        for task_id, agent, state, last_seq, attempt in connection.execute(_TASKS, [owner]):
            stored.tasks[task_id] = StoredTask(task_id, agent, _name(state), last_seq, recorded={attempt})
        for task_id, attempt in connection.execute(_RUNS, [owner]):
            stored.tasks[task_id].recorded.add(attempt)
        for task_id, seq, kind, body, append, attempt in connection.execute(_EVENTS, [owner]):
            item = _item(kind, json.loads(body), append, files)
            stored.tasks[task_id].log.append((seq, item))
            stored.tasks[task_id].made |= {attempt} if item.kind == "artifact" else set()
        for message_id, task_id in connection.execute(_MESSAGES, [owner]):
            stored.messages.setdefault(message_id, []).append(task_id)
        stored.waiting_webhooks = [task_id for (task_id,) in connection.execute(_WAITING, [owner])]
        stored.counted = {(a, o, _name(s)): n for a, o, s, n in connection.execute(_COUNTED)}
        stored.counters = {(a, o, _name(s)): n for a, o, s, n in connection.execute(_COUNTERS)}
    return stored


def read_arrivals(receiver: Receiver) -> Arrivals:
    """What came to every path. A request that nobody answered was not taken."""
    return {
        path: [Arrival(item_of(d.json), 200 <= d.status < 300) for d in came]
        for path, came in receiver.requests().items()
    }


def _name(state: int) -> str:
    """Such as `WORKING`."""
    return str(TaskState.from_number(state)).removeprefix("TASK_STATE_")


def _item(kind: int, body: dict[str, Any], append: bool, files: Path) -> Item:
    if kind == 1:
        return status_item(body)
    if kind == 3:
        return item_of({"message": body})
    for part in body["parts"]:
        if part.get("raw", "").startswith(PREFIX):
            part["text"] = _text_in_file(part["raw"].split(":")[2], files)
    return artifact_item(body, append)


def _text_in_file(part_id: str, files: Path) -> str:
    path = files / name_of(part_id)
    return path.read_text() if path.exists() else f"(no file {part_id})"
