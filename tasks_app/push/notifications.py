"""What webhooks are sent: the events of a task in the version of the protocol that the config was made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from protocol.dialects import task_rest
from protocol.dialects.v03 import V0_3
from protocol.model import StreamResponse, Task, Wire
from protocol.stored_part import MARK
from tasks_app.content.links import own_url
from tasks_app.content.restoring import Policy, restored
from tasks_app.push.queue import Claim
from tasks_app.tables.past import task_at
from tasks_app.tables.record import Event, EventKind
from tasks_app.tables.store import Store

_POLICY = """SELECT a.large_parts FROM tasks_app_task t JOIN agents_agent a ON a.id = t.agent_id WHERE t.id = %s"""


Write = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Unfilled:
    """JSON of a `kind` whose big parts are in files, and what makes a body of it once they are put back."""

    kind: type[Wire]
    text: bytes
    write: Write


@dataclass(frozen=True, slots=True)
class Notification:
    """The body of one POST, which brings the receiver to event `seq`. With `unfilled`, `whole` has to make it first."""

    seq: int
    content_type: str
    body: bytes
    unfilled: Unfilled | None = None


def notification(version: str, seq: int, kind: type[Wire], text: bytes) -> Notification:
    """What tells a receiver of `version` of a Task or StreamResponse in JSON of 1.0."""
    content_type, write = _FORMS.get(version, _1_0)
    if MARK in text:
        return Notification(seq, content_type, b"", Unfilled(kind, text, partial(write, kind)))
    return Notification(seq, content_type, write(kind, text))


async def whole(store: Store, claim: Claim, one: Notification) -> Notification:
    """A notification with its files, which are in memory only while it is sent. What cannot be read comes as a URL."""
    unfilled = one.unfilled
    if unfilled is None:
        return one
    rows = await store.query(_POLICY, [claim.task_id])
    policy = Policy.of(rows[0][0] if rows else "", own_url())
    return replace(one, body=unfilled.write(await restored(unfilled.kind, unfilled.text, policy)), unfilled=None)


async def notifications(store: Store, claim: Claim, events: list[Event]) -> list[Notification]:
    """What a config is sent of events, in order; empty if the task is gone."""
    if claim.version in _FORMS:
        return await _tasks(store, claim, events)
    return [_event(claim, event) for event in events]


async def _tasks(store: Store, claim: Claim, events: list[Event]) -> list[Notification]:
    """0.3 tells of each event with the whole task as it was then (0.3 §9.5); so does the task REST dialect, which knows
    tasks only."""
    record = await store.load(claim.task_id)
    if record is None:
        return []
    past = await store.past(claim.task_id)
    history_length = 0 if claim.version == task_rest.VERSION else None
    found = []
    for event in events:
        if event.kind is EventKind.MESSAGE and claim.version == V0_3.version:
            found.append(_event(claim, event))
        else:
            task = task_at(record, event.seq, past).render(history_length)
            found.append(notification(claim.version, event.seq, Task, task))
    return found


def _event(claim: Claim, event: Event) -> Notification:
    return notification(claim.version, event.seq, StreamResponse, event.payload(claim.task_id, claim.context_id))


def _resource(kind: type[Wire], text: bytes) -> bytes:
    return task_rest.write_notification(text)


def _as_it_is(kind: type[Wire], text: bytes) -> bytes:
    return b'{"task":%b}' % text if kind is Task else text


_1_0 = ("application/a2a+json", _as_it_is)
_FORMS: dict[str, tuple[str, Callable[[type[Wire], bytes], bytes]]] = {
    V0_3.version: ("application/json", V0_3.write),
    task_rest.VERSION: ("application/json", _resource),
}
