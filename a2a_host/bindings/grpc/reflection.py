"""grpc.reflection: what the services are made of, so that tools need no `.proto` file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from google.protobuf.message import DecodeError
from grpc import StatusCode
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from a2a_host.bindings.grpc.transport.call import Method, ServerCall
from a2a_host.bindings.grpc.transport.status import StatusError

NAMES = (reflection.SERVICE_NAME, "grpc.reflection.v1.ServerReflection")
"""On the wire, both versions are the same."""


class Reflection:
    """Answers the questions of a call, one by one."""

    def __init__(self, services: Iterable[str]) -> None:
        # v1 is not listed: the library has no definition of it that a tool could ask for.
        self._servicer = reflection.aio.ReflectionServicer([*services, reflection.SERVICE_NAME])
        self.methods = {f"/{name}/ServerReflectionInfo": Method(self._respond, reads=True) for name in NAMES}

    async def _respond(self, call: ServerCall) -> None:
        call.leave_with_caller()
        answers: Any = self._servicer.ServerReflectionInfo(_requests(call), None)
        async for answer in answers:
            await call.write(answer.SerializeToString())


async def _requests(call: ServerCall) -> AsyncIterator[ServerReflectionRequest]:
    while (message := await call.read()) is not None:
        try:
            yield ServerReflectionRequest.FromString(bytes(message))
        except DecodeError:
            raise StatusError(StatusCode.INVALID_ARGUMENT, "A message is no ServerReflectionRequest.") from None
