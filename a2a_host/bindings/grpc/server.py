"""The gRPC server of this process: services, health, reflection, limits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import grpc
from django.conf import settings
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_reflection.v1alpha import reflection

from a2a_host.bindings.grpc import service_v03, service_v1
from a2a_host.bindings.grpc.service import Service
from a2a_host.bindings.health import is_healthy
from tasks_app.execution.host import Host

_HealthContext = grpc.aio.ServicerContext[HealthCheckRequest, HealthCheckResponse]

SERVICES = (service_v1, service_v03)
LARGEST = 256 * 1024 * 1024
"""Bytes that no agent may set its `max_request_bytes` above."""
READ_AT_LEAST = 32 * 1024 * 1024
"""Bytes of a message that are read in any case, to be refused with details or for an agent that takes more later."""
_ABOVE = 1024 * 1024  # what is so little beyond the largest limit is still refused with details
_WINDOW = 1024 * 1024  # bytes of one message that may be under way to this process
_PINGS_MIN_SECONDS = 5
"""Clients may ask this often whether the connection lives."""


class Health(aio.HealthServicer):
    """SERVING while the process has its database, like GET /healthz."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host

    async def Check(self, request: HealthCheckRequest, context: _HealthContext) -> HealthCheckResponse:
        """grpc.health.v1 Health.Check."""
        try:
            serves = await is_healthy(self._host)
        except Exception:
            serves = False
        if not serves:
            return HealthCheckResponse(status=HealthCheckResponse.NOT_SERVING)
        answer: HealthCheckResponse = await super().Check(request, context)
        return answer


async def make_server(host: Host) -> tuple[grpc.aio.Server, Health]:
    """A server of all services that does not listen yet, and its health."""
    limits = [entry.max_request_bytes for entry in host.registry.entries()]
    server = grpc.aio.server(options=_options(largest_message(limits)))
    server.add_generic_rpc_handlers(
        [Service(host, service.NAME, service.DIALECT, service.METHODS) for service in SERVICES]
    )
    health = Health(host)
    for service in SERVICES:
        await health.set(service.NAME, HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    names = [service.NAME for service in SERVICES]
    reflection.enable_server_reflection(
        [*names, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME], server
    )
    return server, health


def largest_message(limits: Iterable[int]) -> int:
    """Bytes of a message that the server takes into memory; `limits` are those of the agents.

    It does so before anybody knows who is calling: every byte that no agent wants is a gift to those who mean harm.
    """
    return min(max(max(limits, default=0) + _ABOVE, READ_AT_LEAST), LARGEST)


def _options(largest: int) -> list[tuple[str, int]]:
    keep_alive = int(settings.KEEP_ALIVE_SECONDS * 1000)
    return [
        # Each agent has its own limit; what is larger than any agent's is not even read.
        ("grpc.max_receive_message_length", largest),
        ("grpc.max_send_message_length", -1),
        # A window of fixed size: to find out what the line can carry, gRPC would ping its client with every message.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _WINDOW),
        ("grpc.keepalive_time_ms", keep_alive),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", _PINGS_MIN_SECONDS * 1000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", _PINGS_MIN_SECONDS * 1000),
    ]


def listen(server: grpc.aio.Server, address: str) -> None:
    """Have a server listen on `address`, with TLS if the settings name a certificate. Raises RuntimeError."""
    if settings.GRPC_TLS_CERT:
        pair = (Path(settings.GRPC_TLS_KEY).read_bytes(), Path(settings.GRPC_TLS_CERT).read_bytes())
        server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    else:
        server.add_insecure_port(address)
