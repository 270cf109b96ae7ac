"""The stream of changed tasks, in this process: what it sends, and that it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth.models import AnonymousUser, User

from tasks_app.execution.host import Host
from tasks_app.pages import live
from tasks_app.pages.live import LiveTasks
from tasks_app.processes.process import get_host, stop_host

STAFF = User(username="support", is_staff=True)


class Watcher:
    """A browser that listens."""

    def __init__(self, user: User | AnonymousUser = STAFF, method: str = "GET") -> None:
        self._to_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        scope = {"type": "http", "method": method, "path": "/live/tasks", "headers": [], "user": user}
        self._to_server.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        self.task = asyncio.ensure_future(LiveTasks.as_asgi()(scope, self._to_server.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        self._from_server.put_nowait(message)

    async def receive(self) -> dict[str, Any]:
        """The next message of the server."""
        return await asyncio.wait_for(self._from_server.get(), 10)

    async def start(self) -> None:
        """Take the head of a stream."""
        head = await self.receive()
        assert (head["status"], dict(head["headers"])[b"Content-Type"]) == (200, b"text/event-stream")
        assert (await self.receive())["body"] == b"retry: 2000\n\n"

    async def leave(self) -> None:
        """Close the connection, and wait until the server has noticed."""
        self._to_server.put_nowait({"type": "http.disconnect"})
        await asyncio.wait_for(self.task, 10)


@pytest_asyncio.fixture
async def host(db: None, broker: str) -> AsyncIterator[Host]:
    yield await get_host()
    await stop_host()


async def _watching(host: Host, count: int) -> None:
    """Wait until so many watch."""
    async with asyncio.timeout(10):
        while len(host.hub._watchers) != count:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_changes_are_told_together(host: Host) -> None:
    watcher = Watcher()
    await watcher.start()
    await _watching(host, 1)
    for task_id in ("b", "a", "b"):
        host.hub.publish(task_id, [])
    assert (await watcher.receive())["body"] == b'event: tasks\ndata: ["a", "b"]\n\n'
    host.hub.publish("c", [])
    assert (await watcher.receive())["body"] == b'event: tasks\ndata: ["c"]\n\n'
    await watcher.leave()


async def test_changes_of_other_processes_are_told_too(host: Host) -> None:
    watcher = Watcher()
    await watcher.start()
    await _watching(host, 1)
    host.hub.notified("another-process x:1 y:2")
    assert (await watcher.receive())["body"] == b'event: tasks\ndata: ["x", "y"]\n\n'
    await watcher.leave()


async def test_many_changes_are_named_by_a_star(host: Host) -> None:
    watcher = Watcher()
    await watcher.start()
    await _watching(host, 1)
    for number in range(250):
        host.hub.publish(f"task-{number:03d}", [])
    ids = json.loads((await watcher.receive())["body"].partition(b"data: ")[2])
    assert ids == [*(f"task-{number:03d}" for number in range(200)), "*"]
    await watcher.leave()


async def test_nothing_is_left_of_a_browser_that_went(host: Host) -> None:
    watchers = [Watcher(), Watcher()]
    for watcher in watchers:
        await watcher.start()
    await _watching(host, 2)
    await watchers[0].leave()
    await _watching(host, 1)
    host.hub.publish("a", [])
    assert (await watchers[1].receive())["body"] == b'event: tasks\ndata: ["a"]\n\n'
    await watchers[1].leave()
    await _watching(host, 0)


async def test_silence_is_filled_with_comments(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "KEEP_ALIVE_SECONDS", 0.02)
    watcher = Watcher()
    await watcher.start()
    for _ in range(3):
        assert (await watcher.receive())["body"] == b": keep-alive\n\n"
    await watcher.leave()


async def test_a_stream_ends_so_that_the_session_is_looked_at_again(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LIFE_SECONDS", 0.05)
    watcher = Watcher()
    await watcher.start()
    assert await watcher.receive() == {"type": "http.response.body", "body": b"", "more_body": False}
    await _watching(host, 0)
    await watcher.leave()


@pytest.mark.parametrize(
    "user", [AnonymousUser(), User(username="guest"), User(username="former", is_staff=True, is_active=False)]
)
async def test_only_staff_may_watch(user: User | AnonymousUser) -> None:
    watcher = Watcher(user)
    assert (await watcher.receive())["status"] == 403
    assert (await watcher.receive())["body"] == b"Only staff may watch tasks."
    await watcher.leave()


async def test_watching_is_reading() -> None:
    watcher = Watcher(method="POST")
    head = await watcher.receive()
    assert (head["status"], dict(head["headers"])[b"Allow"]) == (405, b"GET")
    await watcher.leave()
