"""What /a2a reads of a request before it knows the agent."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_host.bindings import shared
from tests.tasks_app.world import World

LIMIT = 100_000


class Exchange:
    """One POST to /a2a whose body is to have `size` bytes and never comes; `status` is that of the answer."""

    def __init__(self, path: str, size: int) -> None:
        self.asked_for_body = False
        self.status = 0
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)],
            "url_route": {"args": (), "kwargs": {"rest": path.removeprefix("/a2a") or "/"}},
        }

    async def run(self) -> int:
        """The status of the answer, 0 if the caller left before there was one."""
        await shared.serve_shared(self.scope, self._receive, self._send)
        return self.status

    async def _receive(self) -> dict[str, Any]:
        self.asked_for_body = True
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)


@pytest.mark.parametrize("path", ["/a2a", "/a2a/message:send"])
async def test_where_every_agent_needs_a_key_a_stranger_is_read_little_of(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def get_host() -> object:
        return world.hosts[0]

    monkeypatch.setattr(shared, "get_host", get_host)
    await world.add_agent(open=False, max_request_bytes=LIMIT)
    for size, status, read in ((64 * 1024, 0, True), (64 * 1024 + 1, 401, False)):
        exchange = Exchange(path, size)
        assert (await exchange.run(), exchange.asked_for_body) == (status, read)
    await world.add_agent(open=True, max_request_bytes=LIMIT)
    for size, status, read in ((LIMIT, 0, True), (LIMIT + 1, 413, False)):
        exchange = Exchange(path, size)
        assert (await exchange.run(), exchange.asked_for_body) == (status, read)
