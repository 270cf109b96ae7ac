"""The entries of OUTBOUND_ALLOW. No Django here: the settings stand on this."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Allowed:
    """One exception: a host name or a network, at one port or (None) at all of them."""

    host: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    def covers(self, host: str, port: int, address: Address) -> bool:
        """Whether this entry allows a host that resolved to `address`."""
        if self.port not in (None, port):
            return False
        return host == self.host if self.network is None else address in self.network


def read_allowed(entries: Iterable[str]) -> list[Allowed]:
    """The exceptions in entries such as `hooks.internal`, `localhost:9000`, `10.1.0.0/16`, `[::1]:80`.

    Raises ValueError naming the entry that is none.
    """
    return [_read(entry.strip().lower()) for entry in entries if entry.strip()]


def _read(entry: str) -> Allowed:
    try:
        return Allowed(network=ip_network(entry))
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
        return Allowed(network=ip_network(bare), port=port)
    except ValueError:
        pass
    if not bare or host.startswith("[") or any(not (c.isalnum() or c in "._-") for c in bare):
        raise ValueError(f"{entry} is no host, host:port or network")
    return Allowed(host=bare.removesuffix("."), port=port)
