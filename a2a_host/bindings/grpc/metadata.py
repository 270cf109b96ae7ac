"""What a gRPC call says beside its message (§10.2): service parameters, and which agent it is for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from a2a_host.bindings.grpc.authority import agent_of_authority
from a2a_host.bindings.service_parameters import ServiceParameters
from agents.registry import AgentEntry, Registry
from protocol.errors import AgentNotFoundError, VersionNotSupportedError

AGENT = "a2a-agent"
"""The metadata key that names an agent by its slug."""

_WANTED = {
    "authorization": "authorization",
    "x-api-key": "api_key",
    "a2a-version": "version",
    "a2a-extensions": "extensions",
    "x-a2a-extensions": "extensions_v03",
    "last-event-id": "last_event_id",
}
FIRST_EVENT_ID = "first-event-id"
"""Initial metadata of a stream: the number of its first message in the log of the task. The next ones follow it."""


def read_metadata(metadata: Iterable[Any] | None) -> tuple[ServiceParameters, str]:
    """The service parameters, and the agent that the metadata names or "".

    Values of a repeated key are joined by commas, as HTTP joins header lines.
    """
    found, agent = ServiceParameters(), ""
    for name, value in metadata or ():
        attribute = _WANTED.get(name)
        if attribute is not None and isinstance(value, str):
            earlier = getattr(found, attribute)
            setattr(found, attribute, value if earlier in ("", value) else f"{earlier}, {value}")
        elif name == AGENT and isinstance(value, str):
            agent = value
    return found, agent


def choose_agent(registry: Registry, named: str, tenant: str, authority: str) -> AgentEntry:
    """The agent that a call is for: of its metadata, else its tenant, else its authority, else the host's root.

    Raises AgentNotFoundError.
    """
    slug = named or tenant
    entry = registry.get(slug) if slug else agent_of_authority(registry, authority)
    if entry is None:
        raise AgentNotFoundError("")
    return entry


def check_version(parameters: ServiceParameters, entry: AgentEntry, version: str) -> None:
    """A call without a version is in that of its service, which the agent has to serve.

    Raises VersionNotSupportedError.
    """
    named = parameters.served_version(entry.versions)
    if named not in (None, version):
        raise VersionNotSupportedError(named, (version,))
    if version not in entry.versions:
        raise VersionNotSupportedError(version, entry.versions)
