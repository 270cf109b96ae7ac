"""Sends requests to URLs that callers chose. The address is checked on the socket that is dialled, so a name that
resolves differently a moment later leads nowhere else. Redirects are not followed, proxies of the environment not used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx

from agents.outbound.connection import BrokenError, Connection, Reply, connect
from agents.outbound.rules import OutboundError, OutboundRules, Target, read_url

TOTAL_SECONDS = 20.0
_IDLE_CONNECTIONS = 20  # that are kept open to one origin
_IDLE_SECONDS = 30.0

Origin = tuple[str, str, int]


class OutboundClient:
    """Connections of one event loop, kept open for a while. How many there are at once is for the caller to limit."""

    def __init__(self, rules: OutboundRules) -> None:
        self._rules = rules
        self._tls = httpx.create_ssl_context()
        self._idle: dict[Origin, list[Connection]] = {}
        self._tidied = 0.0

    async def aclose(self) -> None:
        """Close the connections that nobody uses."""
        idle, self._idle = self._idle, {}
        for connection in [connection for kept in idle.values() for connection in kept]:
            connection.close()
        await asyncio.sleep(0)  # in which the event loop closes them

    async def request(self, method: str, url: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> Reply:
        """Send a request, and say what came back. Raises OutboundError for anything that is no reply within
        TOTAL_SECONDS, ForbiddenUrlError for a URL that may not be called."""
        target = read_url(url)
        sent = [
            (b"Host", target.url.netloc),
            (b"User-Agent", b"a2a-host"),
            (b"Accept", b"*/*"),
            (b"Content-Length", str(len(body)).encode()),
            *((name.encode("ascii"), value.encode("ascii")) for name, value in headers),
        ]
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                kept = self._take(target)
                if kept is not None:
                    try:
                        return await self._send(kept, target, method, sent, body)
                    except BrokenError as error:
                        # The other side may have closed it just as the request set out.
                        if not error.silent:
                            raise
                fresh = await connect(target, self._rules, self._tls)
                return await self._send(fresh, target, method, sent, body)
        except TimeoutError:
            raise OutboundError(f"no reply within {TOTAL_SECONDS:.0f} s") from None

    async def _send(
        self, connection: Connection, target: Target, method: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> Reply:
        try:
            return await connection.request(method, target.url.raw_path, headers, body)
        finally:
            self._give_back(connection, target)

    def _take(self, target: Target) -> Connection | None:
        """A connection to the target's origin that was kept and still works."""
        at = asyncio.get_running_loop().time()
        self._tidy(at)
        kept = self._idle.get(_origin(target), [])
        while kept:
            connection = kept.pop()
            if connection.usable and at - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def _give_back(self, connection: Connection, target: Target) -> None:
        kept = self._idle.setdefault(_origin(target), [])
        if connection.usable and len(kept) < _IDLE_CONNECTIONS:
            connection.idle_since = asyncio.get_running_loop().time()
            kept.append(connection)
        else:
            connection.close()

    def _tidy(self, at: float) -> None:
        """Now and then, close what was not used for a while, and forget the origins that nobody calls any more."""
        if at - self._tidied < _IDLE_SECONDS:
            return
        self._tidied = at
        for origin, kept in list(self._idle.items()):
            for connection in [c for c in kept if not c.usable or at - c.idle_since >= _IDLE_SECONDS]:
                kept.remove(connection)
                connection.close()
            if not kept:
                del self._idle[origin]


def _origin(target: Target) -> Origin:
    return target.url.scheme, target.host, target.port
