"""Tasks as the journal would have left them, written straight into the tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse
from msgspec import Raw

from agents.models import Agent
from agents.registration import register_agent
from protocol.codec import encode, plain_text
from protocol.model import Artifact, Message, Part, Role, TaskStatus
from protocol.states import TaskState
from tasks_app.models import Event, Task
from tasks_app.models import Message as MessageRow
from tasks_app.tables.record import EventKind

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

_numbers = itertools.count(1)


def make_agent(slug: str = "echo", **values: Any) -> Agent:
    """A stored agent: the echo simulator, open to everybody, unless `values` say otherwise."""
    agent, _ = register_agent(slug, {"kind": Agent.Kind.SIMULATOR, "executor": "echo", "open": True} | values)
    return agent


def text_message(text: str, role: Role = Role.AGENT, message_id: str = "") -> Message:
    """A message of one text part."""
    return Message(message_id=message_id or f"message-{next(_numbers)}", role=role, parts=[Part(text=text)])


def data_part(json: str, **values: Any) -> Part:
    """A part that holds JSON as it is written here."""
    return Part(data=Raw(json.encode()), **values)


def make_task(
    agent: Agent,
    text: str | Sequence[Part] = "hello",
    state: TaskState = TaskState.COMPLETED,
    *,
    at: datetime = START,
    **values: Any,
) -> Task:
    """A task with its first message, created and changed at `at`, and no events."""
    parts = [Part(text=text)] if isinstance(text, str) else list(text)
    number = next(_numbers)
    task = Task.objects.create(
        id=values.pop("id", f"0199c8f0-0000-7000-8000-{number:012d}"),
        agent=agent,
        state=state.number,
        **{
            "owner": "anonymous",
            "context_id": f"context-{number}",
            "status": encode(TaskStatus(state=state)).decode(),
            "status_at": at,
            "created_at": at,
            "message_count": 1,
            "dialect": "JSONRPC/1.0",
            "request": "{}",
        }
        | values,
    )
    add_message(task, Message(message_id=f"first-{number}", role=Role.USER, parts=parts), 1)
    return task


def add_message(task: Task, message: Message, position: int, after: float = 0) -> None:
    """A message of the history, `after` seconds from the task's creation."""
    MessageRow.objects.create(
        task=task,
        position=position,
        message_id=message.message_id,
        role=1 if message.role is Role.USER else 2,
        body=encode(message).decode(),
        search=plain_text(message.parts),
        created_at=task.created_at + timedelta(seconds=after),
    )


def add_status(task: Task, state: TaskState, after: float, message: Message | None = None) -> int:
    """A status event `after` seconds from the creation, which is the task's status from then on. Returns its seq."""
    status = TaskStatus(state=state) if message is None else TaskStatus(state=state, message=message)
    body = encode(status).decode()
    seq = _add(task, EventKind.STATUS, body, after)
    task.state, task.status, task.status_at = state.number, body, task.created_at + timedelta(seconds=after)
    task.save()
    return seq


def add_artifact(task: Task, artifact_id: str, parts: Sequence[Part], after: float = 1, **values: Any) -> int:
    """An artifact event; `values` are `append`, `last_chunk` and `name`. Returns its seq."""
    artifact = Artifact(artifact_id=artifact_id, name=values.pop("name", ""), parts=list(parts))
    return _add(task, EventKind.ARTIFACT, encode(artifact).decode(), after, artifact_id=artifact_id, **values)


def add_reply(task: Task, message: Message, after: float = 1) -> int:
    """The message that answered instead of a task. Returns its seq."""
    return _add(task, EventKind.MESSAGE, encode(message).decode(), after)


def _add(task: Task, kind: EventKind, body: str, after: float, **values: Any) -> int:
    task.last_seq += 1
    task.version += 1
    task.save()
    at = task.created_at + timedelta(seconds=after)
    Event.objects.create(task=task, seq=task.last_seq, kind=kind, body=body, attempt=1, created_at=at, **values)
    return task.last_seq


class Page(HTMLParser):
    """A page's elements, and the text of those that a test asks for."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.html = response.content.decode()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self._closed: list[tuple[dict[str, str], str]] = []
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        if tag not in ("meta", "link", "input", "img", "br", "hr"):
            self._open.append((tag, values, []))

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            name, values, texts = self._open.pop()
            self._closed.append((values, " ".join("".join(texts).split())))
            if self._open:
                self._open[-1][2].extend([" ", *texts])
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1][2].append(data)

    def texts(self, css_class: str) -> list[str]:
        """The texts of all elements of a class, in the order in which they end."""
        return [text for values, text in self._closed if css_class in values.get("class", "").split()]

    def text(self, element_id: str) -> str:
        """The text of the element with an id."""
        return next(text for values, text in self._closed if values.get("id") == element_id)

    def find(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of the elements of a tag that have the given ones."""
        return [v for t, v in self.elements if t == tag and attributes.items() <= v.items()]

    @property
    def task_ids(self) -> list[str]:
        """The tasks of the list, in order."""
        return [v["id"].removeprefix("task-") for v in self.find("tr") if v.get("id", "").startswith("task-")]
