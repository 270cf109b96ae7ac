"""Sends requests to URLs that callers chose. The address is checked on the socket that is dialled, so a name that
resolves differently a moment later leads nowhere else. Redirects are not followed, proxies of the environment not used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import httpcore
import httpx
from httpcore import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream

from agents.outbound.rules import ForbiddenUrlError, OutboundError, OutboundRules, read_url

CONNECT_SECONDS = 10.0
TOTAL_SECONDS = 20.0
REPLY_BYTES = 64 * 1024
"""Of a reply nothing beyond is read."""

_CONNECTIONS = 1000
_IDLE_CONNECTIONS = 100
_IDLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the other side said: `body` is cut off at REPLY_BYTES."""

    status: int
    body: bytes

    @property
    def accepted(self) -> bool:
        """Whether it is a 2xx (§4.3.3)."""
        return 200 <= self.status < 300


class CheckedBackend(AsyncNetworkBackend):
    """Dials only addresses that the rules permit. TLS still asks for the host by its name."""

    def __init__(self, rules: OutboundRules) -> None:
        self._rules = rules
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 the pool passes it
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """The first connection that one of the host's addresses takes, within `timeout` for all of them."""
        failure: Exception = httpcore.ConnectError("no address")
        options = list(socket_options or ())
        try:
            async with asyncio.timeout(timeout):
                for address in await self._rules.addresses(host, port):
                    try:
                        return await self._sockets.connect_tcp(address, port, None, local_address, options)
                    except httpcore.ConnectError as error:
                        failure = error
        except TimeoutError:
            raise httpcore.ConnectTimeout("connecting took too long") from None
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 the pool passes it
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """Raises ForbiddenUrlError: nothing of this machine is called."""
        raise ForbiddenUrlError("must not lead to a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        """As the pool asks for it."""
        await asyncio.sleep(seconds)


class OutboundClient:
    """A pool of connections of one event loop."""

    def __init__(self, rules: OutboundRules) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=CheckedBackend(rules),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def post(self, url: str, body: bytes, headers: Sequence[tuple[str, str]]) -> Reply:
        """POST, and what came back. Raises OutboundError for anything that is no reply within TOTAL_SECONDS,
        ForbiddenUrlError for a URL that may not be called."""
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
                status, content = await self._exchange(target.url, sent, body)
        except TimeoutError:
            raise OutboundError(f"no reply within {TOTAL_SECONDS:.0f} s") from None
        except (httpcore.ConnectTimeout, httpcore.PoolTimeout):
            raise OutboundError(f"no connection within {CONNECT_SECONDS:.0f} s") from None
        except httpcore.ConnectError:
            raise OutboundError("the connection failed") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
            raise OutboundError("the connection broke before a valid reply") from None
        return Reply(status, content)

    async def _exchange(self, url: httpx.URL, headers: list[tuple[bytes, bytes]], body: bytes) -> tuple[int, bytes]:
        # In its parts, so that it is not read once more, by other rules.
        whole = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        timeouts = {"connect": CONNECT_SECONDS, "pool": CONNECT_SECONDS, "read": TOTAL_SECONDS, "write": TOTAL_SECONDS}
        content = b""
        async with self._pool.stream(
            "POST", whole, headers=headers, content=body, extensions={"timeout": timeouts}
        ) as reply:
            async for chunk in reply.aiter_stream():
                content += chunk[: REPLY_BYTES - len(content)]
                if len(content) >= REPLY_BYTES:
                    break
            return reply.status, content
