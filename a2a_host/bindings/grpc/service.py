"""A gRPC service as a table of operations: from the bytes of a request to those of its answer.

Messages are parsed here and not by the transport: what is no message of the kind is an error of A2A like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, EncodeError, Message

from a2a_host.bindings.grpc.convert_in import json_bytes
from a2a_host.bindings.grpc.convert_out import message_of
from a2a_host.bindings.grpc.deep import flattened
from a2a_host.bindings.grpc.errors import status_error
from a2a_host.bindings.grpc.metadata import FIRST_EVENT_ID, check_version, choose_agent, read_metadata
from a2a_host.bindings.grpc.transport.call import Method, Respond, ServerCall
from a2a_host.bindings.grpc.transport.messages import Message as MessageBytes
from a2a_host.bindings.grpc.transport.request import Request
from a2a_host.bindings.grpc.transport.status import StatusError
from a2a_host.bindings.grpc.uploads import read_held
from a2a_host.bindings.methods import Operation
from a2a_host.bindings.performing import perform_operation
from a2a_host.bindings.service_parameters import activated
from a2a_host.bindings.sse import DialectFrames
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

    It is taken out to be read, so that no more than the caller's content lasts as long as the call.
    """

    __slots__ = ("message", "size")

    def __init__(self, kind: type[Message], data: MessageBytes) -> None:
        self.size = len(data)
        self.message: Message | None = None
        with suppress(DecodeError):
            self.message = kind.FromString(data)  # type: ignore[arg-type]  # It takes a bytearray too.

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


class Service:
    """The methods of one service, in one version of the protocol."""

    def __init__(self, host: Host, name: str, dialect: Dialect, methods: Mapping[str, Rpc]) -> None:
        self._host = host
        self._dialect = dialect
        self.prefix = f"/{name}/"
        self.methods = {self.prefix + method: Method(self._respond(rpc)) for method, rpc in methods.items()}

    def _respond(self, rpc: Rpc) -> Respond:
        dialect = _MessageDialect(self._dialect, rpc)
        perform = self._perform_streaming if rpc.operation.stream is not None else self._perform

        async def respond(call: ServerCall) -> bytes | None:
            try:
                return await perform(call, rpc, dialect)
            except A2AError as error:
                raise status_error(error) from None
            except StatusError:
                raise
            except Exception:
                logger.exception("A gRPC call of %s failed", rpc.operation.name)
                raise status_error(InternalError()) from None

        return respond

    async def _perform(self, call: ServerCall, rpc: Rpc, dialect: _MessageDialect) -> bytes:
        """Once it has begun it goes on without its caller: a message that is taken in is taken in whole."""
        received = _Received(rpc.request, call.take())
        operation = self._begin(received, call.request)
        answer = await perform_operation(operation, dialect, rpc.operation, dialect.read_message, received)
        assert isinstance(answer, bytes)
        if extensions := activated(operation):
            call.set_initial_metadata(extensions)
        return answer

    async def _perform_streaming(self, call: ServerCall, rpc: Rpc, dialect: _MessageDialect) -> None:
        received = _Received(rpc.request, call.take())
        operation = self._begin(received, call.request)
        frames = await perform_operation(operation, dialect, rpc.operation, dialect.read_message, received)
        assert not isinstance(frames, bytes)
        try:
            call.leave_with_caller()
            call.set_initial_metadata([(FIRST_EVENT_ID, str(frames.stream.first_seq)), *activated(operation)])
            call.write_head()
            del received, operation  # An idle stream is as small as it can be.
            await _send(frames, call)
        finally:
            await frames.aclose()

    def _begin(self, received: _Received, request: Request) -> Call:
        """The call of a message, authenticated, in a version that is served. Raises A2AError."""
        if received.message is None:
            raise ParseError("The message is not in the form of its protobuf definition.")
        parameters, named = read_metadata(request.metadata)
        entry = choose_agent(self._host.registry, named, getattr(received.message, "tenant", ""), request.authority)
        if received.size > entry.max_request_bytes:
            raise RequestTooLargeError(entry.max_request_bytes)
        call = parameters.call(self._host, entry, "GRPC")
        call.dialect = f"GRPC/{self._dialect.version}"
        check_version(parameters, entry, self._dialect.version)
        return call


async def _send(frames: DialectFrames, call: ServerCall) -> None:
    """Send the frames of a stream to their end. Raises UnavailableError if the host ends it."""
    while (frame := await frames.next()) is not None:
        if frame.payload is not None:  # Signs of life are HTTP/2's own here.
            await call.write(frame.payload)
        del frame
    if frames.stream.interrupted:
        raise UnavailableError(retry_after=1)


def unknown_method(name: str) -> Method:
    """A method that a service does not have."""

    async def respond(call: ServerCall) -> bytes:
        raise status_error(MethodNotFoundError(name))

    return Method(respond)
