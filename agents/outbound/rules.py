"""Which URLs the host may call: public addresses, and what the operator lists in OUTBOUND_ALLOW, but nothing that
OUTBOUND_DENY lists (§13.2).

Host and port are read off the very object that is sent, so that nobody can mean one host and have another one checked.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import httpx
from django.conf import settings
from yarl import URL

from agents.outbound.listed import EVERYTHING, Address, Listed
from agents.outbound.resolving import LookUp, Resolver, UnresolvedError, look_up

URL_MAX = 2048

_NAME = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_][a-z0-9_-]{0,62}\.)*[a-z0-9_][a-z0-9_-]{0,62}")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")  # what every resolver reads as an IPv4 address
_UNICAST = IPv6Network("2000::/3")
_6TO4 = IPv6Network("2002::/16")
_NAT64 = IPv6Network("64:ff9b::/96")
# What some versions of Python count as public: protocol assignments, relays, examples (RFC 6890 and later).
# And a metadata service at a public address; the others are link-local or private.
_NEVER = [
    ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20", "100.64.0.0/10", "168.63.129.16/32")
]


_DENIED = "must not lead to a host that this one never calls"


class OutboundError(Exception):
    """A request could not be made. The message is short and may be shown to the caller who gave the URL."""


class ForbiddenUrlError(OutboundError):
    """The URL may not be called, today or ever."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL leads: `host` as a name in lower case or an address as text. `url` is what is sent."""

    url: URL
    host: str
    port: int

    @property
    def is_address(self) -> bool:
        """Whether the host is an address, however it is spelled."""
        return _literal(self.host) is not None


class OutboundRules:
    """Checks URLs and addresses; `allow` holds the exceptions from "public addresses only", and `deny` wins over both.

    Only EVERYTHING in `deny` leaves what `allow` lists. `look_up` gives the addresses of a name, and may block.
    """

    def __init__(self, allow: Sequence[Listed], deny: Sequence[Listed] = (), look_up: LookUp = look_up) -> None:
        self._allow = tuple(allow)
        self._deny = tuple(entry for entry in deny if entry.host != EVERYTHING)
        self._only_allowed = tuple(entry for entry in deny if entry.host == EVERYTHING)
        self._resolver = Resolver(look_up)

    @classmethod
    def from_settings(cls) -> OutboundRules:
        """With OUTBOUND_ALLOW and OUTBOUND_DENY."""
        return cls(settings.OUTBOUND_ALLOW, settings.OUTBOUND_DENY)

    async def check(self, url: str) -> None:
        """Raises ForbiddenUrlError for a URL that may not be called.

        A name that cannot be resolved now is taken: the addresses are checked again when they are dialled.
        """
        target = read_url(url)
        try:
            await self.addresses(target.host, target.port)
        except ForbiddenUrlError:
            raise
        except OutboundError:
            return

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host, all of which may be dialled. Raises ForbiddenUrlError if one may not.

        Raises OutboundError if there is none, or none in time.
        """
        host = normal_host(host)
        if any(entry.names(host, port) for entry in self._deny):
            raise ForbiddenUrlError(_DENIED)
        literal = _literal(host)
        found = [literal] if literal is not None else await self._resolve(host)
        for address in found:
            fault = self.fault(host, port, address)
            if fault:
                raise ForbiddenUrlError(fault)
        return [str(address) for address in found]

    def fault(self, host: str, port: int, address: Address) -> str:
        """Why `address`, which `host` resolved to, may not be dialled at this port; "" if it may."""
        inner = _inner(address) if isinstance(address, IPv6Address) else None
        for seen in (address, *([inner] if inner is not None else [])):
            if any(entry.covers(host, port, seen) for entry in self._deny):
                return _DENIED
        if any(entry.covers(host, port, address) for entry in self._allow):
            return ""
        if any(entry.names(host, port) for entry in self._only_allowed):
            return _DENIED
        return "" if is_public(address) else "must not lead to a private, local or reserved address"

    async def _resolve(self, host: str) -> Sequence[Address]:
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761 §6.3, whatever a name server says
            return [IPv4Address("127.0.0.1")]
        try:
            return await self._resolver.resolve(host)
        except UnresolvedError as error:
            raise OutboundError(str(error)) from None


def read_url(url: str) -> Target:
    """Where a URL leads. Raises ForbiddenUrlError for anything but a plain http or https URL."""
    if len(url) > URL_MAX:
        raise ForbiddenUrlError(f"must have at most {URL_MAX} characters")
    if any(c.isspace() or c == "\\" for c in url):
        raise ForbiddenUrlError("must not hold spaces or backslashes")
    try:
        parsed = httpx.URL(url)  # It takes less for a URL than the library that sends, and spells each in one way.
    except (httpx.InvalidURL, ValueError):
        raise ForbiddenUrlError("is not a URL") from None
    if parsed.scheme not in ("http", "https"):
        raise ForbiddenUrlError("must be an http or https URL")
    if parsed.userinfo:
        raise ForbiddenUrlError("must not hold a user name or password")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise ForbiddenUrlError("has no valid port")
    return _target(URL(str(parsed), encoded=True))


def _target(url: URL) -> Target:
    host = normal_host(url.raw_host or "")
    if url.port is None or (_literal(host) is None and not _NAME.fullmatch(host)):
        raise ForbiddenUrlError("has no valid host name")
    return Target(url, host, url.port)


def normal_host(host: str) -> str:
    """A host without the dot of a fully qualified name, in lower case."""
    return host.lower().removesuffix(".")


def is_public(address: Address) -> bool:
    """Whether an address is somebody else's on the Internet, also when it wraps an IPv4 address."""
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST or address.scope_id:
            return False
    if address.is_multicast or address.is_reserved or address.is_unspecified or any(address in n for n in _NEVER):
        return False
    return address.is_global


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this one end at: mapped, 6to4, NAT64."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _6TO4:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _literal(host: str) -> Address | None:
    """The address that a host is a spelling of, such as 127.1, 0x7f000001, 017700000001; None for a name.

    Raises ForbiddenUrlError for numbers that are no address.
    """
    try:
        return ip_address(host)
    except ValueError:
        pass
    if ":" not in host and _NUMBER.fullmatch(host):
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            raise ForbiddenUrlError("has no valid host name") from None
    return None
