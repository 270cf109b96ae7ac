"""What webhooks are sent: the events of a task in the version of the protocol that the config was made with."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.dialects import task_rest
from protocol.dialects.v03 import V0_3
from protocol.model import StreamResponse, Task
from tasks_app.past import task_at
from tasks_app.push.queue import Claim
from tasks_app.record import Event, EventKind
from tasks_app.store import Store


@dataclass(frozen=True, slots=True)
class Notification:
    """The body of one POST, which brings the receiver to event `seq`."""

    seq: int
    content_type: str
    body: bytes


async def notifications(store: Store, claim: Claim, events: list[Event]) -> list[Notification]:
    """What a config is sent of events, in order; empty if the task is gone."""
    if claim.version == V0_3.version:
        return await _tasks(store, claim, events)
    if claim.version == task_rest.VERSION:
        return await _resources(store, claim, events)
    return [
        Notification(event.seq, "application/a2a+json", event.payload(claim.task_id, claim.context_id))
        for event in events
    ]


async def _resources(store: Store, claim: Claim, events: list[Event]) -> list[Notification]:
    """The task REST dialect knows tasks only, so it tells of each event with the task, too."""
    record = await store.load(claim.task_id)
    if record is None:
        return []
    past = await store.past(claim.task_id)
    bodies = [task_rest.write_notification(task_at(record, event.seq, past).render(0)) for event in events]
    return [Notification(event.seq, "application/json", body) for event, body in zip(events, bodies, strict=True)]


async def _tasks(store: Store, claim: Claim, events: list[Event]) -> list[Notification]:
    """0.3 tells of each event with the whole task as it was then (0.3 §9.5)."""
    record = await store.load(claim.task_id)
    if record is None:
        return []
    past = await store.past(claim.task_id)
    found = []
    for event in events:
        if event.kind is EventKind.MESSAGE:
            body = V0_3.write(StreamResponse, event.payload(claim.task_id, claim.context_id))
        else:
            body = V0_3.write(Task, task_at(record, event.seq, past).render())
        found.append(Notification(event.seq, "application/json", body))
    return found
