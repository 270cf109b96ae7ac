"""A gRPC service as a table of operations: from the bytes of a request to those of its answer.

Messages are parsed here and not by the library: what is no message of the kind is an error of A2A like any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

import grpc
import msgspec
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, EncodeError, Message

from a2a_host.bindings.grpc.convert_in import json_bytes
from a2a_host.bindings.grpc.convert_out import message_of
from a2a_host.bindings.grpc.deep import flattened
from a2a_host.bindings.grpc.errors import refuse
from a2a_host.bindings.grpc.metadata import FIRST_EVENT_ID, check_version, choose_agent, read_metadata
from a2a_host.bindings.grpc.uploads import read_held
from a2a_host.bindings.methods import Operation
from a2a_host.bindings.performing import perform_operation
from a2a_host.bindings.service_parameters import activated
from protocol.dialects import Dialect
from protocol.errors import (
    A2AError,
    InternalError,
    MethodNotFoundError,
    ParseError,
    RequestTooLargeError,
    UnavailableError,
)
from protocol.model import Wire
from tasks_app.execution.host import Host
from tasks_app.operations import Call

logger = logging.getLogger(__name__)

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, bytes]

_decode = msgspec.json.decode
_TOO_DEEP = (EncodeError, DecodeError)
"""What protobuf raises for what is nested too deeply: when all is written, or before for what is so by itself."""


def _as_it_is(members: dict[str, Any]) -> dict[str, Any]:
    return members


@dataclass(frozen=True, slots=True)
class Rpc:
    """One method: the messages of an operation.

    `read` gives the JSON of a request in the dialect of its service, `shape` the members of the answer from those that
    the dialect gives.
    """

    operation: Operation
    request: type[Message]
    response: type[Message]
    read: Callable[[Message], bytes] = json_bytes
    shape: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is


class _Received:
    """The message of a request, None if the bytes are none, and how many they were.

    The library keeps what it was given for as long as the call lasts, so the message is taken out to be read.
    """

    __slots__ = ("message", "size")

    def __init__(self, kind: type[Message], data: bytes) -> None:
        self.size = len(data)
        self.message: Message | None = None
        with suppress(DecodeError):
            self.message = kind.FromString(data)

    def take(self) -> Message:
        """The message, which is forgotten here."""
        message, self.message = self.message, None
        assert message is not None
        return message


class _MessageDialect:
    """A dialect whose answers are the messages of a method. `dialect` is that of their JSON."""

    def __init__(self, dialect: Dialect, rpc: Rpc) -> None:
        self._dialect = dialect
        self._rpc = rpc
        self.version = dialect.version
        self.read = dialect.read
        self.renamed = dialect.renamed

    def read_message(self, dialect: Dialect, kind: type[Wire], received: _Received) -> tuple[Wire, Dialect]:
        """The request in a message. Raises InvalidParamsError."""
        message = received.take()
        return read_held(message, received.size, kind, lambda: dialect.read(kind, self._rpc.read(message))), dialect

    def write(self, kind: type[Wire], body: bytes) -> bytes:
        """The message that answers, as bytes, from the 1.0 JSON of a `kind`. Raises InternalError."""
        if self._rpc.response is Empty:
            return b""
        try:
            return self._message(kind, body)
        except _TOO_DEEP:
            pass  # It is rare: to look for it first would cost every answer.
        try:
            return self._message(kind, flattened(kind, body))
        except _TOO_DEEP:
            raise InternalError("The answer holds JSON that is nested deeper than protobuf can carry.") from None

    def _message(self, kind: type[Wire], body: bytes) -> bytes:
        members = self._rpc.shape(_decode(self._dialect.write(kind, body)))
        return message_of(self._rpc.response, members).SerializeToString()


class Service(grpc.GenericRpcHandler):
    """The methods of one service, in one version of the protocol."""

    def __init__(self, host: Host, name: str, dialect: Dialect, methods: Mapping[str, Rpc]) -> None:
        self._host = host
        self._dialect = dialect
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
        receive = partial(_Received, rpc.request)
        if rpc.operation.stream is not None:
            return grpc.unary_stream_rpc_method_handler(self._streaming(rpc), request_deserializer=receive)
        return grpc.unary_unary_rpc_method_handler(self._unary(rpc), request_deserializer=receive)

    def _unary(self, rpc: Rpc) -> Any:
        dialect = _MessageDialect(self._dialect, rpc)

        async def respond(received: _Received, context: Context) -> bytes:
            try:
                call = self._begin(received, context)
                work = perform_operation(call, dialect, rpc.operation, dialect.read_message, received)
                answer = await self._unbroken(work)
                assert isinstance(answer, bytes)
                await _name_extensions(context, call)
                return answer
            except Exception as error:
                await _fail(context, rpc, error)

        return respond

    def _streaming(self, rpc: Rpc) -> Any:
        dialect = _MessageDialect(self._dialect, rpc)

        async def respond(received: _Received, context: Context) -> None:
            try:
                call = self._begin(received, context)
                work = perform_operation(call, dialect, rpc.operation, dialect.read_message, received)
                frames = await self._unbroken(work)
                assert not isinstance(frames, bytes)
            except Exception as error:
                await _fail(context, rpc, error)
            try:
                first = str(frames.stream.first_seq)
                await context.send_initial_metadata(((FIRST_EVENT_ID, first), *activated(call)))
                del received, call, work  # An idle stream is as small as it can be.
                while (frame := await frames.next()) is not None:
                    if frame.payload is not None:  # Signs of life are HTTP/2's own here.
                        await context.write(frame.payload)
                    del frame
                if frames.stream.interrupted:
                    raise UnavailableError(retry_after=1)
            except Exception as error:
                await _fail(context, rpc, error)
            finally:
                await frames.aclose()

        return respond

    def _begin(self, received: _Received, context: Context) -> Call:
        """The call of a message, authenticated, in a version that is served. Raises A2AError."""
        if received.message is None:
            raise ParseError("The message is not in the form of its protobuf definition.")
        parameters, named = read_metadata(context.invocation_metadata())
        entry = choose_agent(self._host.registry, named, getattr(received.message, "tenant", ""))
        if received.size > entry.max_request_bytes:
            raise RequestTooLargeError(entry.max_request_bytes)
        call = parameters.call(self._host, entry, "GRPC")
        call.dialect = f"GRPC/{self._dialect.version}"
        check_version(parameters, entry, self._dialect.version)
        return call

    async def _unbroken(self, work: Awaitable[T]) -> T:
        """What `work` gives. It goes on when the caller goes away: a message that is taken in is taken in whole."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._host.spawn(_finish(task))
            raise


async def _name_extensions(context: Context, call: Call) -> None:
    """Tell the caller which extensions are activated (§3.2.6)."""
    named = activated(call)
    if named:
        await context.send_initial_metadata(named)


async def _fail(context: Context, rpc: Rpc, error: Exception) -> NoReturn:
    """End a call with what was raised; only errors of the protocol are told."""
    if isinstance(error, A2AError):
        await refuse(context, error)
    if isinstance(error, grpc.aio.AbortError):
        raise error
    logger.error("A gRPC call of %s failed", rpc.operation.name, exc_info=error)
    await refuse(context, InternalError())


async def _finish(work: asyncio.Future[Any]) -> None:
    """See work to its end that nobody waits for any more."""
    with suppress(A2AError):
        result = await work
        if not isinstance(result, bytes):
            await result.aclose()


def _unknown(method: str) -> Any:
    async def respond(data: bytes, context: Context) -> bytes:
        await refuse(context, MethodNotFoundError(method))

    return grpc.unary_unary_rpc_method_handler(respond)
