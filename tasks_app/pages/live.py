"""The stream that tells open pages which tasks changed. Runs off Django's handler, with the session of the browser."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.generic.http import AsyncHttpConsumer

from tasks_app.processes.process import get_host

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15.0
LIFE_SECONDS = 600.0  # the browser then connects again, and its session is looked at again
MOST_IDS = 200  # ids in one event; a "*" says that more have changed

_STREAM_HEADERS = [
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-store"),
    (b"X-Accel-Buffering", b"no"),
]
_TEXT_HEADERS = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"Cache-Control", b"no-store")]


class LiveTasks(AsyncHttpConsumer):  # type: ignore[misc]  # channels ships no types
    """Server-sent events `tasks` with a JSON list of task ids, for staff."""

    streaming: asyncio.Task[None] | None = None

    async def http_request(self, message: dict[str, Any]) -> None:
        """Answer without waiting for the stream's end, so that the disconnect is heard."""
        if message.get("more_body"):
            return
        user = self.scope["user"]
        if self.scope["method"] != "GET":
            await self.send_response(405, b"Use GET.", headers=[*_TEXT_HEADERS, (b"Allow", b"GET")])
        elif not (user.is_active and user.is_staff):
            await self.send_response(403, b"Only staff may watch tasks.", headers=_TEXT_HEADERS)
        else:
            await self.send_headers(headers=_STREAM_HEADERS)
            self.streaming = asyncio.create_task(self._stream(), name="live tasks")

    async def disconnect(self) -> None:
        """Stop watching."""
        if self.streaming is not None:
            self.streaming.cancel()
            await asyncio.gather(self.streaming, return_exceptions=True)

    async def _stream(self) -> None:
        await self.send_body(b"retry: 2000\n\n", more_body=True)
        try:
            host = await get_host()
            async with asyncio.timeout(LIFE_SECONDS):
                await self._tell(host.hub.watch())
        except (TimeoutError, StopAsyncIteration):
            pass  # the browser connects again
        except Exception:
            logger.exception("A live stream ended early")
        await self.send_body(b"")

    async def _tell(self, changes: AsyncIterator[set[str]]) -> None:
        while True:
            waiting = asyncio.ensure_future(anext(changes))
            try:
                while not (await asyncio.wait({waiting}, timeout=KEEP_ALIVE_SECONDS))[0]:
                    await self.send_body(b": keep-alive\n\n", more_body=True)
            finally:
                waiting.cancel()  # which also ends the watch; nothing happens to one that is done
            await self.send_body(_event(waiting.result()), more_body=True)


def _event(ids: set[str]) -> bytes:
    named = sorted(ids)[:MOST_IDS]
    if len(ids) > MOST_IDS:
        named.append("*")
    return f"event: tasks\ndata: {json.dumps(named)}\n\n".encode()


live_tasks = AuthMiddlewareStack(LiveTasks.as_asgi())
