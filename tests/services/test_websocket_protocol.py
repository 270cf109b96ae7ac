"""The WebSocket connection under a real uvicorn that stops while a client is still waiting to be let in."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import uvicorn

from a2a_host.websocket_protocol import WebSocketProtocol
from tests.services.test_joined_writes import serving


async def test_who_is_not_let_in_yet_when_the_server_stops_is_told_to_come_again() -> None:
    asked = asyncio.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await receive()  # the wish to connect
        await receive()  # the end

    config = uvicorn.Config(application, ws=WebSocketProtocol, lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    async with serving(application, server) as (reader, writer):
        writer.write(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: " + base64.b64encode(b"0" * 16) + b"\r\n\r\n"
        )
        await asked.wait()
        server.should_exit = True
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "http/1.1 503 service unavailable"
    assert {"content-type: application/json", "retry-after: 1", f"content-length: {len(body)}"} <= set(lines[1:])
    assert [line for line in lines if line.startswith("content-type")] == ["content-type: application/json"]
    reply = json.loads(body)
    assert (reply["id"], reply["error"]["data"][0]["reason"]) == (None, "UNAVAILABLE")
