"""Where an agent answers: the table of bindings behind `supportedInterfaces` (§4.4.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from agents.entries import AgentEntry
from protocol.card import AgentInterface


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding. `url` gives where an agent answers in it, by its entry and the base URL; "" where it does not.

    `versions` are those of the protocol that the binding speaks. `by_tenant`: the URL is shared by agents, so the
    interface names the agent's tenant; only the agent at the host root is reached without, as 0.3 has no tenants.
    """

    name: str
    versions: tuple[str, ...]
    url: Callable[[AgentEntry, str], str]
    by_tenant: bool = False


def agent_url(slug: str, base_url: str) -> str:
    """Where an agent answers, in every binding over HTTP."""
    return f"{base_url}/agents/{slug}"


def _agent_url(entry: AgentEntry, base_url: str) -> str:
    return agent_url(entry.slug, base_url)


def _grpc_url(entry: AgentEntry, base_url: str) -> str:
    """`host:port`. Behind a PUBLIC_URL only the operator knows it: GRPC_PUBLIC_URL."""
    if settings.GRPC_PUBLIC_URL:
        return str(settings.GRPC_PUBLIC_URL)
    if settings.PUBLIC_URL or not settings.GRPC_PORT:
        return ""
    host = urlsplit(base_url).hostname or ""
    return f"[{host}]:{settings.GRPC_PORT}" if ":" in host else f"{host}:{settings.GRPC_PORT}"


def _websocket_url(entry: AgentEntry, base_url: str) -> str:
    """`ws://…` or `wss://…`, as the base URL is http or https."""
    return f"ws{_agent_url(entry, base_url).removeprefix('http')}/ws"


JSONRPC_WEBSOCKET = "urn:a2a-host:binding:jsonrpc-websocket:1.0"
"""The custom binding (§5.8) that docs/websocket.md specifies. A breaking change gives it another name."""

SHARED_VERSION = "1.0"
"""0.3 has no tenants."""

BINDINGS = (
    Binding("JSONRPC", ("1.0", "0.3"), _agent_url),
    Binding("HTTP+JSON", ("1.0", "0.3"), _agent_url),
    Binding("GRPC", ("1.0", "0.3"), _grpc_url, by_tenant=True),
    Binding(JSONRPC_WEBSOCKET, ("1.0",), _websocket_url),
)
"""The bindings of every agent, the preferred one first."""


def interfaces(entry: AgentEntry, base_url: str) -> list[AgentInterface]:
    """All that is on for an agent, the newest version first."""
    return [
        AgentInterface(
            url=url,
            protocol_binding=binding.name,
            protocol_version=version,
            tenant=entry.slug if binding.by_tenant and version != "0.3" else "",
        )
        for version in entry.versions
        for binding in BINDINGS
        if (url := _url(binding, version, entry, base_url))
    ]


def shared_interfaces(entry: AgentEntry, base_url: str) -> list[AgentInterface]:
    """Where an agent answers under the address that all agents share, /a2a, by its tenant (§8.3.2)."""
    return [
        AgentInterface(
            url=f"{base_url}/a2a", protocol_binding=binding, tenant=entry.slug, protocol_version=SHARED_VERSION
        )
        for binding in ("JSONRPC", "HTTP+JSON")
    ]


def _url(binding: Binding, version: str, entry: AgentEntry, base_url: str) -> str:
    unreachable = binding.by_tenant and version == "0.3" and not entry.is_root
    return "" if version not in binding.versions or unreachable else binding.url(entry, base_url)
