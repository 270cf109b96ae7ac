"""The entries of OUTBOUND_ALLOW and OUTBOUND_DENY. No Django here: the settings stand on this."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address

EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Listed:
    """A host name, a suffix of names (with its dot), EVERYTHING, or a network; at one port or (None) at all of them."""

    host: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    def names(self, host: str, port: int) -> bool:
        """Whether this entry is about a host, whatever its addresses."""
        if self.network is not None or self.port not in (None, port):
            return False
        if self.host.startswith("."):
            return host == self.host[1:] or host.endswith(self.host)
        return self.host in (host, EVERYTHING)

    def covers(self, host: str, port: int, address: Address) -> bool:
        """Whether this entry is about a host that resolved to `address`."""
        if self.network is None:
            return self.names(host, port)
        return self.port in (None, port) and address in self.network


def read_list(entries: Iterable[str]) -> list[Listed]:
    """Entries such as `hooks.internal`, `.internal`, `localhost:9000`, `10.1.0.0/16`, `[::1]:80`, `*`.

    Raises ValueError naming the entry that is none.
    """
    return [_read(entry.strip().lower()) for entry in entries if entry.strip()]


def _read(entry: str) -> Listed:
    try:
        return Listed(network=ip_network(entry))
    except ValueError:
        pass
    host, port = entry, None
    if entry.startswith("[") or entry.count(":") == 1:
        host, colon, digits = entry.rpartition(":") if not entry.endswith("]") else (entry, "", "")
        if colon:
            if not digits.isdecimal() or not 0 < int(digits) < 65536:
                raise ValueError(f"{entry} has no valid port")
            port = int(digits)
    bare = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    try:
        return Listed(network=ip_network(bare), port=port)
    except ValueError:
        pass
    if bare != EVERYTHING and (host.startswith("[") or not bare.strip(".") or any(not _fits(c) for c in bare)):
        raise ValueError(f"{entry} is no host, suffix, host:port or network")
    return Listed(host=bare.removesuffix("."), port=port)


def _fits(character: str) -> bool:
    return character.isalnum() or character in "._-"
