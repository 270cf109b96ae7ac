"""The calls that are measured, in both bindings: request bytes, and the check that its reply must pass."""

from __future__ import annotations

import itertools
import json
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.replies import (
    PAGE,
    STATES_V03,
    Card,
    ListResult,
    Reader,
    SendResult,
    StreamResult,
    Task,
    WrongReply,
    check_card,
    check_echo,
    check_page,
    check_stored,
    check_stream,
    events_of,
    require,
)
from benchmarks.wire import JSON, Endpoint

EVENT_STREAM = "text/event-stream"


@dataclass(slots=True)
class Call:
    """One request, and what to do with its whole reply: `check(body)` raises WrongReply."""

    raw: bytes
    check: Callable[[bytes], None]


@dataclass(slots=True)
class Known:
    """A task that exists on the server, with the text that it echoes."""

    id: str
    text: str


class Binding(Protocol):
    """Builds calls for one server in one binding. Every call is a new one: its own message, text and id."""

    def send(self, seen: Callable[[Known], None] | None = None) -> Call:
        """SendMessage to an echo agent; `seen` is given the task of a right reply."""

    def stream(self) -> Call:
        """SendStreamingMessage to an echo agent."""

    def get(self, tasks: Sequence[Known]) -> Call:
        """GetTask of one of `tasks`."""

    def list_tasks(self, total: int) -> Call:
        """The first page of ListTasks, of `total` tasks."""


_numbers = itertools.count(1)


def _message(text: str) -> dict[str, Any]:
    return {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]}


def _new_text() -> str:
    return f"hello world {next(_numbers)}"


def _echo_check(
    read: Callable[[bytes], SendResult], text: str, seen: Callable[[Known], None] | None
) -> Callable[[bytes], None]:
    def check(body: bytes) -> None:
        task = read(body).task
        check_echo(task, text)
        if seen:
            seen(Known(task.id, text))

    return check


class JsonRpc:
    """JSON-RPC (§9): every call is a POST to the endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sent = Reader(SendResult, rpc=True)
        self._event = Reader(StreamResult, rpc=True)
        self._task = Reader(Task, rpc=True)
        self._page = Reader(ListResult, rpc=True)

    def request(self, method: str, params: dict[str, Any], accept: str = JSON) -> tuple[bytes, int]:
        """The bytes of one call, and its id."""
        number = next(_numbers)
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self._endpoint.request("POST", body=body.encode(), accept=accept), number

    def send(self, seen: Callable[[Known], None] | None = None, webhook: str = "") -> Call:
        text = _new_text()
        params: dict[str, Any] = {"message": _message(text)}
        if webhook:
            params["configuration"] = {"taskPushNotificationConfig": {"url": webhook}}
        raw, number = self.request("SendMessage", params)
        return Call(raw, _echo_check(lambda body: self._sent.read(body, number), text, seen))

    def start(self, text: str, webhook: str) -> Call:
        """SendMessage that does not wait for the end of its task, of which a webhook is told."""
        configuration = {"returnImmediately": True, "taskPushNotificationConfig": {"url": webhook}}
        raw, number = self.request("SendMessage", {"message": _message(text), "configuration": configuration})

        def check(body: bytes) -> None:
            require(bool(self._sent.read(body, number).task.id), "a task without an id")

        return Call(raw, check)

    def stream(self) -> Call:
        text = _new_text()
        raw, number = self.request("SendStreamingMessage", {"message": _message(text)}, EVENT_STREAM)
        return Call(raw, lambda body: check_stream([self._event.read(e, number) for e in events_of(body)], text))

    def get(self, tasks: Sequence[Known]) -> Call:
        task = random.choice(tasks)
        raw, number = self.request("GetTask", {"id": task.id})
        return Call(raw, lambda body: check_stored(self._task.read(body, number), task.id, task.text))

    def list_tasks(self, total: int) -> Call:
        raw, number = self.request("ListTasks", {"pageSize": PAGE})
        return Call(raw, lambda body: check_page(self._page.read(body, number), total))

    def begin(self, text: str) -> tuple[bytes, int]:
        """SendStreamingMessage of a text as bytes, and its id."""
        return self.request("SendStreamingMessage", {"message": _message(text)}, EVENT_STREAM)

    def subscribe(self, task_id: str) -> tuple[bytes, int]:
        """SubscribeToTask as bytes, and its id."""
        return self.request("SubscribeToTask", {"id": task_id}, EVENT_STREAM)

    def cancel(self, task_id: str) -> Call:
        """CancelTask; the reply must be the CANCELED task."""
        raw, number = self.request("CancelTask", {"id": task_id})

        def check(body: bytes) -> None:
            task = self._task.read(body, number)
            if (task.id, task.status.state) != (task_id, "TASK_STATE_CANCELED"):
                raise WrongReply(f"not cancelled: {task.id} {task.status.state}")

        return Call(raw, check)

    def event(self, data: bytes, number: int) -> StreamResult:
        """One event of a stream that answers call `number`."""
        return self._event.read(data, number)


class JsonRpcV03:
    """JSON-RPC in version 0.3: `message/send`, whose result is the task itself."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._task = Reader(Task, rpc=True)

    def send(self) -> Call:
        """message/send to an echo agent."""
        text, number = _new_text(), next(_numbers)
        message = {"kind": "message", "messageId": uuid.uuid4().hex, "role": "user"}
        params = {"message": {**message, "parts": [{"kind": "text", "text": text}]}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "message/send", "params": params})
        raw = self._endpoint.request("POST", body=body.encode(), version="0.3")

        def check(reply: bytes) -> None:
            task = self._task.read(reply, number)
            task.status.state = STATES_V03.get(task.status.state, task.status.state)
            check_echo(task, text)

        return Call(raw, check)


class HttpJson:
    """HTTP+JSON (§11): paths below the base URL."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sent = Reader(SendResult, rpc=False)
        self._event = Reader(StreamResult, rpc=False)
        self._task = Reader(Task, rpc=False)
        self._page = Reader(ListResult, rpc=False)

    def _post(self, suffix: str, text: str, accept: str = JSON) -> bytes:
        return self._endpoint.request("POST", suffix, json.dumps({"message": _message(text)}).encode(), accept)

    def send(self, seen: Callable[[Known], None] | None = None) -> Call:
        text = _new_text()
        return Call(self._post("/message:send", text), _echo_check(lambda body: self._sent.read(body, 0), text, seen))

    def stream(self) -> Call:
        text = _new_text()
        raw = self._post("/message:stream", text, EVENT_STREAM)
        return Call(raw, lambda body: check_stream([self._event.read(e, 0) for e in events_of(body)], text))

    def get(self, tasks: Sequence[Known]) -> Call:
        task = random.choice(tasks)
        raw = self._endpoint.request("GET", f"/tasks/{task.id}")
        return Call(raw, lambda body: check_stored(self._task.read(body, 0), task.id, task.text))

    def list_tasks(self, total: int) -> Call:
        raw = self._endpoint.request("GET", f"/tasks?pageSize={PAGE}")
        return Call(raw, lambda body: check_page(self._page.read(body, 0), total))


def card_call(endpoint: Endpoint) -> Callable[[], Call]:
    """GET of an agent card; `endpoint` is the card's own URL."""
    raw = endpoint.request("GET")
    reader = Reader(Card, rpc=False)
    return lambda: Call(raw, lambda body: check_card(reader.read(body, 0)))
