"""Sends requests to URLs that callers chose. The address is checked where it is dialled, so a name that resolves
differently a moment later leads nowhere else. Redirects are not followed, proxies of the environment not used.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver, ResolveResult

from agents.outbound.rules import OutboundError, OutboundRules, Target, read_url

CONNECT_SECONDS = 10.0
TOTAL_SECONDS = 20.0
REPLY_BYTES = 64 * 1024
"""Of a reply nothing beyond is read."""
_IDLE_SECONDS = 30.0  # that a connection is kept open


@dataclass(frozen=True, slots=True)
class Reply:
    """What the other side said: `body` is cut off at REPLY_BYTES."""

    status: int
    body: bytes

    @property
    def accepted(self) -> bool:
        """Whether it is a 2xx (§4.3.3)."""
        return 200 <= self.status < 300


class CheckedResolver(AbstractResolver):
    """Gives a connection only addresses that the rules permit. TLS still asks for the host by its name."""

    def __init__(self, rules: OutboundRules) -> None:
        self._rules = rules

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host. Raises OutboundError, ForbiddenUrlError."""
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in await self._rules.addresses(host, port)
        ]

    async def close(self) -> None:
        """Nothing is held."""


class OutboundClient:
    """Connections of one event loop, kept open for a while. How many there are at once is for the caller to limit."""

    def __init__(self, rules: OutboundRules) -> None:
        self._rules = rules
        self._session: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def request(self, method: str, url: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> Reply:
        """Send a request, and say what came back. Raises OutboundError for anything that is no reply within
        TOTAL_SECONDS, ForbiddenUrlError for a URL that may not be called."""
        target = read_url(url)
        if target.is_address:  # No resolver is asked for it.
            await self._rules.addresses(target.host, target.port)
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                try:
                    return await self._send(method, target, headers, body)
                except aiohttp.ClientConnectorError:
                    raise
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                    # A kept connection, as a rule, that the other side closed as the request set out.
                    return await self._send(method, target, headers, body)
        except aiohttp.ConnectionTimeoutError:
            raise OutboundError(f"no connection within {CONNECT_SECONDS:.0f} s") from None
        except TimeoutError:
            raise OutboundError(f"no reply within {TOTAL_SECONDS:.0f} s") from None
        except aiohttp.ClientConnectorError:
            raise OutboundError("the connection failed") from None
        except (aiohttp.ClientError, ValueError, OSError):
            raise OutboundError("the connection broke before a valid reply") from None

    async def _send(self, method: str, target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> Reply:
        async with self._opened().request(
            method, target.url, headers=headers, data=body, allow_redirects=False
        ) as response:
            return Reply(response.status, await _beginning(response.content))

    def _opened(self) -> aiohttp.ClientSession:
        """Made where the event loop runs."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=CheckedResolver(self._rules),
                ssl=httpx.create_ssl_context(),  # Has certificates on machines that have none.
                use_dns_cache=False,  # A name may lead elsewhere by now.
                limit=0,
                keepalive_timeout=_IDLE_SECONDS,
                happy_eyeballs_delay=None,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "a2a-host"},
                skip_auto_headers=("Accept-Encoding", "Content-Type"),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            )
        return self._session


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    """What of a body is read. A connection with more on it is not used again."""
    read = b""
    while len(read) < REPLY_BYTES and (chunk := await content.read(REPLY_BYTES - len(read))):
        read += chunk
    return read
