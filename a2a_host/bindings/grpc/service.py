"""A gRPC service as a table of operations: from the bytes of a request to those of its answer.

Messages are parsed here and not by the library: what is no message of the kind is an error of A2A like any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError, EncodeError, Message

from a2a_host.bindings.grpc.errors import refuse
from a2a_host.bindings.grpc.metadata import check_version, choose_agent, read_metadata
from a2a_host.bindings.methods import Operation
from a2a_host.bindings.performing import settle_tenant
from protocol.dialects.v1 import V1_0
from protocol.errors import (
    A2AError,
    InternalError,
    MethodNotFoundError,
    ParseError,
    RequestTooLargeError,
    UnavailableError,
)
from protocol.model import Wire
from tasks_app.host import Host
from tasks_app.operations import Call, TaskStream
from tasks_app.usage import counted

logger = logging.getLogger(__name__)

T = TypeVar("T")
Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Rpc:
    """One method: `read` gives the 1.0 JSON of a request, `write` the bytes of the answer to 1.0 JSON."""

    operation: Operation
    request: type[Message]
    read: Callable[[Any], bytes]
    write: Callable[[bytes], bytes]


class Service(grpc.GenericRpcHandler):
    """The methods of one service, in one version of the protocol."""

    def __init__(self, host: Host, name: str, version: str, methods: Mapping[str, Rpc]) -> None:
        self._host = host
        self._version = version
        self._prefix = f"/{name}/"
        self._handlers = {self._prefix + method: self._handler(rpc) for method, rpc in methods.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a call; None for another service's."""
        method = handler_call_details.method
        handler = self._handlers.get(method)
        if handler is None and method.startswith(self._prefix):
            return _unknown(method.removeprefix(self._prefix))
        return handler

    def _handler(self, rpc: Rpc) -> Any:
        if rpc.operation.stream is not None:
            return grpc.unary_stream_rpc_method_handler(self._streaming(rpc))
        return grpc.unary_unary_rpc_method_handler(self._unary(rpc))

    def _unary(self, rpc: Rpc) -> Any:
        run = rpc.operation.run

        async def answer(data: bytes, context: Context) -> bytes:
            try:
                message, call = self._begin(rpc, data, context)
                with counted(call, rpc.operation.name):
                    request = _request(rpc, message, call)
                    assert run is not None
                    return _written(rpc, await self._unbroken(run(call, request)))
            except Exception as error:
                await _fail(context, rpc, error)

        return answer

    def _streaming(self, rpc: Rpc) -> Any:
        open_stream = rpc.operation.stream

        async def answer(data: bytes, context: Context) -> AsyncIterator[bytes]:
            try:
                message, call = self._begin(rpc, data, context)
                with counted(call, rpc.operation.name):
                    request = _request(rpc, message, call)
                    assert open_stream is not None
                    stream = await self._unbroken(open_stream(call, request))
            except Exception as error:
                await _fail(context, rpc, error)
            del data, message, call, request
            try:
                async for frame in stream:
                    if frame.payload is not None:  # Signs of life are HTTP/2's own here.
                        yield _written(rpc, frame.payload)
                if stream.interrupted:
                    raise UnavailableError(retry_after=1)
            except Exception as error:
                await _fail(context, rpc, error)
            finally:
                await stream.aclose()

        return answer

    def _begin(self, rpc: Rpc, data: bytes, context: Context) -> tuple[Message, Call]:
        """The parsed message and its call, authenticated, in a version that is served. Raises A2AError."""
        try:
            message = rpc.request.FromString(data)
        except DecodeError:
            raise ParseError("The message is not in the form of its protobuf definition.") from None
        parameters, named = read_metadata(context.invocation_metadata())
        entry = choose_agent(self._host.registry, named, getattr(message, "tenant", ""))
        if len(data) > entry.max_request_bytes:
            raise RequestTooLargeError(entry.max_request_bytes)
        call = parameters.call(self._host, entry, "GRPC")
        call.dialect = f"GRPC/{self._version}"
        check_version(parameters, entry, self._version)
        return message, call

    async def _unbroken(self, work: Awaitable[T]) -> T:
        """What `work` gives. It goes on when the caller goes away: a message that is taken in is taken in whole."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._host.spawn(_finish(task))
            raise


def _request(rpc: Rpc, message: Message, call: Call) -> Wire:
    """The request in a message. Raises A2AError."""
    if rpc.operation.check is not None:
        rpc.operation.check(call.entry)
    request = V1_0.read(rpc.operation.request, rpc.read(message))
    settle_tenant(call.entry, request)
    return request


async def _fail(context: Context, rpc: Rpc, error: Exception) -> NoReturn:
    """End a call with what was raised; only errors of the protocol are told."""
    if isinstance(error, A2AError):
        await refuse(context, error)
    if isinstance(error, grpc.aio.AbortError):
        raise error
    logger.error("A gRPC call of %s failed", rpc.operation.name, exc_info=error)
    await refuse(context, InternalError())


def _written(rpc: Rpc, body: bytes) -> bytes:
    try:
        return rpc.write(body)
    except EncodeError:
        raise InternalError("The answer holds JSON that is nested deeper than protobuf can carry.") from None


async def _finish(work: asyncio.Future[Any]) -> None:
    """See work to its end that nobody waits for any more."""
    with suppress(A2AError):
        result = await work
        if isinstance(result, TaskStream):
            await result.aclose()


def _unknown(method: str) -> Any:
    async def answer(data: bytes, context: Context) -> bytes:
        await refuse(context, MethodNotFoundError(method))

    return grpc.unary_unary_rpc_method_handler(answer)
