"""Agents by host name: `echo.agents.example.com` names `echo`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from django.conf import settings

from agents.registry import AgentEntry, Registry
from protocol.errors import AgentNotFoundError


def agent_of_authority(registry: Registry, authority: str) -> AgentEntry | None:
    """The agent that an authority names, else the one of the host's root, if there is one.

    Below a public host name every name is an agent's: raises AgentNotFoundError. Other names may be this machine's.
    """
    host = host_of(authority)
    for public in _public_hosts():
        if host == public:
            return registry.root
        if host.endswith(f".{public}"):
            return registry.get(host.removesuffix(f".{public}"))
    if not _is_address(host):
        with suppress(AgentNotFoundError):
            return registry.get(host.partition(".")[0])
    return registry.root


def host_of(authority: str) -> str:
    """The host name or address of an authority, in lower case and without its port."""
    try:
        return (urlsplit(f"//{authority}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _public_hosts() -> Iterator[str]:
    for url in (settings.PUBLIC_URL, f"//{settings.GRPC_PUBLIC_URL}"):
        host = urlsplit(url).hostname
        if host and not _is_address(host):
            yield host


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
