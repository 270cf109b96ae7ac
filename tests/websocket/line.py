"""A client of the binding as docs/websocket.md describes it, on the library `websockets`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.support.callers import Caller
from tests.support.peers import envelope, message
from tests.support.refusals import CODES, Refused, refusal_of_rpc

FINAL = {"final": True}


class Line:
    """One connection. Replies are kept by id until somebody asks for them."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._kept: list[dict[str, Any]] = []

    async def ask(self, id: Any, method: str, params: Any = None) -> None:
        """Send a request."""
        await self.connection.send(envelope(method, params, id))

    async def reply(self, id: Any) -> dict[str, Any]:
        """The next reply with this id, whatever comes before it."""
        for index, kept in enumerate(self._kept):
            if kept["id"] == id:
                return self._kept.pop(index)
        while (reply := json.loads(await self.connection.recv()))["id"] != id:
            self._kept.append(reply)
        return reply  # type: ignore[no-any-return]

    async def result(self, id: Any) -> dict[str, Any]:
        """The result of the next reply with this id. Raises Refused."""
        reply = await self.reply(id)
        if "error" in reply:
            raise refusal(reply, id)
        assert list(reply) == ["jsonrpc", "id", "result"]
        found: dict[str, Any] = reply["result"]
        return found

    async def call(self, id: Any, method: str, params: Any = None) -> dict[str, Any]:
        """The result of a call. Raises Refused."""
        await self.ask(id, method, params)
        return await self.result(id)

    async def rest(self, id: Any) -> list[dict[str, Any]]:
        """What is left of a stream, without the reply that ends it."""
        items = []
        while (item := await self.result(id)) != FINAL:
            items.append(item)
        return items

    async def nothing_more(self) -> None:
        """Whatever was sent so far has been answered, with nothing that was not asked for."""
        await self.ask("last", "GetTask", {"id": "none"})
        assert (await self.reply("last"))["error"]["code"] == -32001
        assert self._kept == []


def refusal(reply: dict[str, Any], id: Any) -> Refused:
    """The error of a reply; HTTP statuses have no place here."""
    reason = reply["error"]["data"][0]["reason"]
    return refusal_of_rpc(CODES[reason][1], reply, id)


@asynccontextmanager
async def open_line(caller: Caller, slug: str, query: str = "", **options: Any) -> AsyncIterator[Line]:
    """A connection of a caller to an agent."""
    url = f"ws://127.0.0.1:{caller.web.port}/agents/{slug}/ws{query}"
    options = {"additional_headers": caller.headers, "max_size": None, "compression": None} | options
    async with connect(url, proxy=None, **options) as connection:
        yield Line(connection)


def saying(text: str = "hi", **members: Any) -> dict[str, Any]:
    """Parameters of SendMessage."""
    return {"message": message(text), **members}


def state(response: dict[str, Any]) -> str:
    """Of a task, or of a StreamResponse with a task or a status."""
    inner = response.get("task") or response.get("statusUpdate") or response
    found: str = inner["status"]["state"]
    return found.removeprefix("TASK_STATE_")
