"""What the tests read of tasks and streams, and how they spell a request by hand."""

from __future__ import annotations

import itertools
from typing import Any

from tests.support.callers import Caller
from tests.support.deployment import Deployment, wait_until
from tests.support.events import Event
from tests.support.peers import Peer

TERMINAL = {"COMPLETED", "FAILED", "CANCELED", "REJECTED"}
CHUNKS = [f"chunk {number}\n" for number in range(1, 31)]
"""What the agent `steps` sends."""


def state(task: dict[str, Any]) -> str:
    """Such as `WORKING`."""
    found: str = task["status"]["state"]
    return found.removeprefix("TASK_STATE_")


def texts(artifacts: list[dict[str, Any]]) -> list[list[str]]:
    return [[part["text"] for part in artifact["parts"]] for artifact in artifacts]


def terminal_events(deployment: Deployment, task: str) -> int:
    """How many events of a task's log say that it has ended."""
    bodies = deployment.query("SELECT body FROM tasks_app_event WHERE task_id = %s AND kind = 1", [task])
    return sum(any(f"TASK_STATE_{name}" in body for name in TERMINAL) for (body,) in bodies)


def at_work(peer: Peer, content: str = "hold", **members: Any) -> dict[str, Any]:
    """A new task once it is stored as WORKING."""
    task = peer.start(content, **members)
    wait_until(lambda: state(peer.get(task["id"])) == "WORKING", "the task to be at work")
    return peer.get(task["id"])


def states(events: list[Event]) -> list[str]:
    return [event.state for event in events if event.state]


def assemble(events: list[Event]) -> list[str]:
    """The texts of the one artifact, as a client puts it together from a snapshot and the updates after it (§4.2.2)."""
    found: list[str] = []
    for event in events:
        if event.kind == "task":
            found = [text for artifact in texts(event.response["task"].get("artifacts", [])) for text in artifact]
        elif event.kind == "artifactUpdate":
            update = event.response["artifactUpdate"]
            parts = [part["text"] for part in update["artifact"]["parts"]]
            found = [*found, *parts] if update.get("append") else parts
    return found


def only_grow(events: list[Event]) -> bool:
    numbers = [event.id for event in events]
    return all(a < b for a, b in itertools.pairwise(numbers))


def raw_message(parts: str = '[{"text":"hi"}]', **members: str | None) -> str:
    """SendMessage parameters as JSON text, with members of the message given as JSON; None leaves one out."""
    all_members = {"messageId": '"m1"', "role": '"ROLE_USER"', "parts": parts, **members}
    inner = ",".join(f'"{name}":{value}' for name, value in all_members.items() if value is not None)
    return f'{{"message":{{{inner}}}}}'


def raw_part(part: str) -> str:
    return raw_message(f"[{part}]")


def ended(caller: Caller, binding: str, outcome: str) -> tuple[Peer, dict[str, Any]]:
    """A task that has ended in this state, and its agent."""
    slug = {"COMPLETED": "echo", "FAILED": "boom", "REJECTED": "reject", "CANCELED": "hold"}[outcome]
    peer = caller.at(slug, binding)
    task = peer.start() if outcome == "CANCELED" else peer.say()
    if outcome == "CANCELED":
        task = peer.cancel(task["id"])
    assert state(task) == outcome
    return peer, task
