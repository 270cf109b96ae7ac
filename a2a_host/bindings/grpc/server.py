"""The gRPC server of this process: services, health, reflection, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django.conf import settings

from a2a_host.bindings.grpc import health, service_v03, service_v1
from a2a_host.bindings.grpc.health import Health
from a2a_host.bindings.grpc.reflection import Reflection
from a2a_host.bindings.grpc.service import Service, unknown_method
from a2a_host.bindings.grpc.transport.call import Method
from a2a_host.bindings.grpc.transport.server import Server
from tasks_app.execution.host import Host

SERVICES = (service_v1, service_v03)
LARGEST = 256 * 1024 * 1024
"""Bytes that no agent may set its `max_request_bytes` above."""
READ_AT_LEAST = 32 * 1024 * 1024
"""Bytes of a message that are read in any case, to be refused with details or for an agent that takes more later."""
_ABOVE = 1024 * 1024  # what is so little beyond the largest limit is still refused with details
_UNFINISHED = 8  # so many of the largest messages may come in at the same time


def make_server(host: Host) -> tuple[Server, Health]:
    """A server of all services that does not listen yet, and its health."""
    largest = largest_message(entry.max_request_bytes for entry in host.registry.entries())
    names = [service.NAME for service in SERVICES]
    its_health = Health(host, names)
    services = [Service(host, service.NAME, service.DIALECT, service.METHODS) for service in SERVICES]
    find = _finder(services, its_health.methods | Reflection([*names, health.NAME]).methods)
    server = Server(find, largest=largest, room=_UNFINISHED * largest, keep_alive=settings.KEEP_ALIVE_SECONDS)
    return server, its_health


def _finder(services: Iterable[Service], others: dict[str, Method]) -> Callable[[str], Method | None]:
    """What finds a method by its path; None for another service's."""
    methods, prefixes = dict(others), [service.prefix for service in services]
    for service in services:
        methods |= service.methods

    def find(path: str) -> Method | None:
        method = methods.get(path)
        if method is None:
            prefix = next((prefix for prefix in prefixes if path.startswith(prefix)), None)
            return None if prefix is None else unknown_method(path.removeprefix(prefix))
        return method

    return find


def largest_message(limits: Iterable[int]) -> int:
    """Bytes of a message that the server takes into memory; `limits` are those of the agents.

    It does so before anybody knows who is calling: every byte that no agent wants is a gift to those who mean harm.
    """
    return min(max(max(limits, default=0) + _ABOVE, READ_AT_LEAST), LARGEST)
