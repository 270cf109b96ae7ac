"""Clients of one agent in each binding, for a host that may vanish at any moment.

Three ways to fail: `Broken` (nobody knows whether the host did it), `Away` (it said that it did not and to try again)
and `Refused` with a reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import grpc
import httpx
import websockets
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from websockets.asyncio.client import connect

from tests.chaos.books import Heard, item_of
from tests.support.grpc_peer import members

SECONDS = 10.0
"""How long a client waits for anything before it tries elsewhere."""

Params = Mapping[str, Any]
Events = AsyncGenerator[tuple[Heard, dict[str, Any]], None]
"""Of a stream: what it said, and the StreamResponse."""


class Broken(Exception):
    """The connection broke or nothing came in time."""


class Away(Exception):
    """UNAVAILABLE: refused for now."""


class Refused(Exception):
    """Refused for this reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class Client(Protocol):
    """What every binding can do. Replies are the results of 1.0; streams yield until the host ends them.

    With `after` a stream goes on after that event.
    """

    name: str

    async def send(self, params: Params) -> dict[str, Any]: ...

    async def get(self, task_id: str) -> dict[str, Any]: ...

    async def cancel(self, task_id: str) -> dict[str, Any]: ...

    def stream(self, params: Params, after: int | None = None) -> Events: ...

    def subscribe(self, task_id: str, after: int | None) -> Events: ...


def failure(reason: str, message: str) -> Exception:
    """The exception for an error reply."""
    return Away(message) if reason == "UNAVAILABLE" else Refused(reason, message)


class HttpClient:
    """What the two HTTP bindings share."""

    def __init__(self, http: httpx.AsyncClient, url: str, headers: dict[str, str]) -> None:
        self._http = http
        self._url = url
        self._headers = headers

    async def _ask(self, verb: str, url: str, body: Any, headers: dict[str, str]) -> dict[str, Any]:
        try:
            response = await self._http.request(verb, url, json=body, headers=headers)
        except httpx.TransportError as error:
            raise Broken(repr(error)) from error
        return self._read(response)

    async def _stream(self, verb: str, url: str, body: Any, after: int | None) -> Events:
        resuming = {} if after is None else {"last-event-id": str(after)}
        sse = self._headers | resuming | {"accept": "text/event-stream"}
        try:
            async with self._http.stream(verb, url, json=body, headers=sse) as response:
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    await response.aread()
                    self._read(response)
                    raise Refused("NO_STREAM", response.text)
                seq = 0
                async for line in response.aiter_lines():
                    if line.startswith("id: "):
                        seq = int(line[4:])
                    elif line.startswith("data: "):
                        result = self._unwrap(json.loads(line[6:]))
                        yield Heard(seq, item_of(result)), result
        except httpx.TransportError as error:
            raise Broken(repr(error)) from error

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        try:
            reply = response.json()
        except ValueError:
            if response.status_code == 503:
                raise Away(response.text) from None
            raise Refused(f"HTTP_{response.status_code}", response.text[:200]) from None
        return self._unwrap(reply)

    def _unwrap(self, reply: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


class JsonRpcClient(HttpClient):
    """§9."""

    name = "jsonrpc"

    async def send(self, params: Params) -> dict[str, Any]:
        return await self._call("SendMessage", params)

    async def get(self, task_id: str) -> dict[str, Any]:
        return await self._call("GetTask", {"id": task_id})

    async def cancel(self, task_id: str) -> dict[str, Any]:
        return await self._call("CancelTask", {"id": task_id})

    def stream(self, params: Params, after: int | None = None) -> Events:
        return self._stream("POST", self._url, _envelope("SendStreamingMessage", params), after)

    def subscribe(self, task_id: str, after: int | None) -> Events:
        return self._stream("POST", self._url, _envelope("SubscribeToTask", {"id": task_id}), after)

    async def _call(self, method: str, params: Params) -> dict[str, Any]:
        return await self._ask("POST", self._url, _envelope(method, params), self._headers)

    def _unwrap(self, reply: dict[str, Any]) -> dict[str, Any]:
        return _result(reply)


class RestClient(HttpClient):
    """§11."""

    name = "rest"

    async def send(self, params: Params) -> dict[str, Any]:
        return await self._ask("POST", f"{self._url}/message:send", params, self._headers)

    async def get(self, task_id: str) -> dict[str, Any]:
        return await self._ask("GET", f"{self._url}/tasks/{task_id}", None, self._headers)

    async def cancel(self, task_id: str) -> dict[str, Any]:
        return await self._ask("POST", f"{self._url}/tasks/{task_id}:cancel", {}, self._headers)

    def stream(self, params: Params, after: int | None = None) -> Events:
        return self._stream("POST", f"{self._url}/message:stream", params, after)

    def subscribe(self, task_id: str, after: int | None) -> Events:
        return self._stream("POST", f"{self._url}/tasks/{task_id}:subscribe", {}, after)

    def _unwrap(self, reply: dict[str, Any]) -> dict[str, Any]:
        error = reply.get("error")
        if error:
            raise failure(error["details"][0]["reason"], error["message"])
        return reply


class GrpcClient:
    """§10. The tenant names the agent."""

    name = "grpc"

    def __init__(self, channel: grpc.aio.Channel, slug: str, headers: dict[str, str]) -> None:
        self._stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]
        self._slug = slug
        self._metadata = list(headers.items())

    async def send(self, params: Params) -> dict[str, Any]:
        return await self._call("SendMessage", self._request(pb.SendMessageRequest, params))

    async def get(self, task_id: str) -> dict[str, Any]:
        return await self._call("GetTask", self._request(pb.GetTaskRequest, {"id": task_id}))

    async def cancel(self, task_id: str) -> dict[str, Any]:
        return await self._call("CancelTask", self._request(pb.CancelTaskRequest, {"id": task_id}))

    def stream(self, params: Params, after: int | None = None) -> Events:
        return self._stream("SendStreamingMessage", self._request(pb.SendMessageRequest, params), after)

    def subscribe(self, task_id: str, after: int | None) -> Events:
        return self._stream("SubscribeToTask", self._request(pb.SubscribeToTaskRequest, {"id": task_id}), after)

    def _request(self, kind: type[Message], params: Params) -> Message:
        return ParseDict({"tenant": self._slug, **params}, kind())

    async def _call(self, method: str, request: Message) -> dict[str, Any]:
        with _grpc_failures():
            return members(await getattr(self._stub, method)(request, metadata=self._metadata, timeout=SECONDS))

    async def _stream(self, method: str, request: Message, after: int | None) -> Events:
        resuming = [] if after is None else [("last-event-id", str(after))]
        call = getattr(self._stub, method)(request, metadata=[*self._metadata, *resuming], timeout=6 * SECONDS)
        seq: int | None = None
        try:
            while True:
                with _grpc_failures():
                    message = await asyncio.wait_for(call.read(), 2 * SECONDS)
                if message is grpc.aio.EOF:
                    return
                seq = await _first_seq(call) if seq is None else seq + 1
                result = members(message)
                yield Heard(seq, item_of(result)), result
        except TimeoutError:
            raise Broken("nothing came") from None
        finally:
            call.cancel()


class WebSocketClient:
    """docs/websocket.md, with a connection for each call."""

    name = "websocket"

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = f"{url.replace('http', 'ws', 1)}/ws"
        self._headers = headers

    async def send(self, params: Params) -> dict[str, Any]:
        return await self._call("SendMessage", params)

    async def get(self, task_id: str) -> dict[str, Any]:
        return await self._call("GetTask", {"id": task_id})

    async def cancel(self, task_id: str) -> dict[str, Any]:
        return await self._call("CancelTask", {"id": task_id})

    def stream(self, params: Params, after: int | None = None) -> Events:
        return self._stream("SendStreamingMessage", {**params, "lastEventId": after})

    def subscribe(self, task_id: str, after: int | None) -> Events:
        return self._stream("SubscribeToTask", {"id": task_id, "lastEventId": after})

    async def _call(self, method: str, params: Params) -> dict[str, Any]:
        async with self._asked(method, params) as connection:
            return _result(json.loads(await asyncio.wait_for(connection.recv(), SECONDS)))

    async def _stream(self, method: str, params: Params) -> Events:
        async with self._asked(method, params) as connection:
            while True:
                reply = json.loads(await asyncio.wait_for(connection.recv(), 2 * SECONDS))
                result = _result(reply)
                if result == {"final": True}:
                    return
                yield Heard(reply["eventId"], item_of(result)), result

    @asynccontextmanager
    async def _asked(self, method: str, params: Params) -> AsyncIterator[Any]:
        options: dict[str, Any] = {"additional_headers": self._headers, "open_timeout": SECONDS, "close_timeout": 1}
        try:
            async with connect(self._url, proxy=None, compression=None, max_size=None, **options) as connection:
                await connection.send(json.dumps(_envelope(method, params)))
                yield connection
        except websockets.InvalidStatus as error:
            if error.response.status_code == 503:
                raise Away(str(error)) from error
            raise Refused(f"HTTP_{error.response.status_code}", str(error)) from error
        except (OSError, TimeoutError, websockets.WebSocketException) as error:
            raise Broken(repr(error)) from error


class _grpc_failures:
    """`with _grpc_failures():` turns an error status into one of ours."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, grpc.aio.AioRpcError):
            return
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                info = error_details_pb2.ErrorInfo()
                Status.FromString(value).details[0].Unpack(info)
                raise failure(info.reason, error.details() or "") from None
        raise Broken(f"{error.code().name}: {error.details()}") from None


def _envelope(method: str, params: Params) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _result(reply: dict[str, Any]) -> dict[str, Any]:
    if "error" in reply:
        raise failure(reply["error"]["data"][0]["reason"], reply["error"]["message"])
    result: dict[str, Any] = reply["result"]
    return result


async def _first_seq(call: Any) -> int:
    (value,) = [value for key, value in await call.initial_metadata() if key == "first-event-id"]
    return int(value)
