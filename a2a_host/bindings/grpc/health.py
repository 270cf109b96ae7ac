"""grpc.health.v1: whether this process serves, as GET /healthz says it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress

from google.protobuf.message import DecodeError
from grpc import StatusCode
from grpc_health.v1.health_pb2 import DESCRIPTOR, HealthCheckRequest, HealthCheckResponse

from a2a_host.bindings.grpc.transport.call import Method, ServerCall
from a2a_host.bindings.grpc.transport.status import StatusError
from a2a_host.bindings.health import is_healthy
from tasks_app.execution.host import Host

NAME: str = DESCRIPTOR.services_by_name["Health"].full_name
_LOOK_SECONDS = 5.0  # how often those who watch would hear of a database that is gone


class Health:
    """SERVING while the process has its database and is not about to stop, for each of `services` and for "", all."""

    def __init__(self, host: Host, services: Collection[str]) -> None:
        self._host = host
        self._services = {"", *services}
        self._stopping = asyncio.Event()
        self.methods = {f"/{NAME}/Check": Method(self._check), f"/{NAME}/Watch": Method(self._watch)}

    def stop(self) -> None:
        """From here on, nothing is SERVING."""
        self._stopping.set()

    async def status(self, service: str) -> int:
        """The ServingStatus of a service; SERVICE_UNKNOWN if it is none."""
        if service not in self._services:
            return HealthCheckResponse.SERVICE_UNKNOWN
        try:
            serves = not self._stopping.is_set() and await is_healthy(self._host)
        except Exception:
            serves = False
        return HealthCheckResponse.SERVING if serves else HealthCheckResponse.NOT_SERVING

    async def _check(self, call: ServerCall) -> bytes:
        status = await self.status(_service(call))
        if status == HealthCheckResponse.SERVICE_UNKNOWN:
            raise StatusError(StatusCode.NOT_FOUND, "There is no such service.")
        return HealthCheckResponse(status=status).SerializeToString()

    async def _watch(self, call: ServerCall) -> None:
        """The status, and again whenever it is another one. It ends as the process does, for who watches to go on."""
        service = _service(call)
        call.leave_with_caller()
        told = None
        while True:
            status = await self.status(service)
            if status != told:
                await call.write(HealthCheckResponse(status=status).SerializeToString())
                told = status
            if self._stopping.is_set():
                raise StatusError(StatusCode.UNAVAILABLE, "The server is shutting down.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _LOOK_SECONDS)


def _service(call: ServerCall) -> str:
    try:
        return HealthCheckRequest.FromString(bytes(call.take())).service
    except DecodeError:
        raise StatusError(StatusCode.INVALID_ARGUMENT, "The message is no HealthCheckRequest.") from None
