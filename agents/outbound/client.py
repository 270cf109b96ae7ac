"""Sends requests to URLs that callers chose. The address is checked on the socket that is dialled, so a name that
resolves differently a moment later leads nowhere else. Redirects are not followed, proxies of the environment not used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpcore
import httpx
from httpcore import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream

from agents.outbound.rules import ForbiddenUrlError, OutboundError, OutboundRules, read_url

CONNECT_SECONDS = 10.0
TOTAL_SECONDS = 20.0
REPLY_BYTES = 64 * 1024
"""Of a reply nothing beyond is read."""

_CONNECTIONS = 200  # to one host and port at the same time
_IDLE_CONNECTIONS = 20  # that are kept open to each
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
    """Connections of one event loop, kept open for a while. Each origin has a pool of its own: a pool looks at all of
    its connections for every request, and one that hangs must not cost the others anything."""

    def __init__(self, rules: OutboundRules) -> None:
        self._backend = CheckedBackend(rules)
        self._tls = httpx.create_ssl_context()
        self._pools: dict[tuple[bytes, bytes, int | None], _Pool] = {}
        self._tidied = 0.0

    async def aclose(self) -> None:
        """Close the connections."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.connections.aclose()

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
        # In its parts, so that it is not read once more, by other rules.
        parts = target.url
        whole = httpcore.URL(scheme=parts.raw_scheme, host=parts.raw_host, port=parts.port, target=parts.raw_path)
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                return await self._exchange(httpcore.Request(method, whole, headers=sent, content=body))
        except TimeoutError:
            raise OutboundError(f"no reply within {TOTAL_SECONDS:.0f} s") from None
        except (httpcore.ConnectTimeout, httpcore.PoolTimeout):
            raise OutboundError(f"no connection within {CONNECT_SECONDS:.0f} s") from None
        except httpcore.ConnectError:
            raise OutboundError("the connection failed") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
            raise OutboundError("the connection broke before a valid reply") from None

    async def _exchange(self, request: httpcore.Request) -> Reply:
        await self._tidy()
        with self._pool(request.url) as pool:
            kept = any(connection.is_idle() for connection in pool.connections)
            try:
                return await _send(pool, request)
            except (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError):
                if not kept:
                    raise
            # The other side may have closed a kept connection just as the request set out.
            return await _send(pool, request)

    @contextmanager
    def _pool(self, url: httpcore.URL) -> Iterator[httpcore.AsyncConnectionPool]:
        key = (url.scheme, url.host, url.port)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = _Pool(self._new_pool())
        pool.users += 1
        try:
            yield pool.connections
        finally:
            pool.users -= 1
            pool.used_at = asyncio.get_running_loop().time()

    def _new_pool(self) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            ssl_context=self._tls,
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=self._backend,
        )

    async def _tidy(self) -> None:
        """Now and then, forget the origins that nobody calls any more."""
        at = asyncio.get_running_loop().time()
        if at - self._tidied < _IDLE_SECONDS:
            return
        self._tidied = at
        idle = [k for k, p in self._pools.items() if not p.users and at - p.used_at > _IDLE_SECONDS]
        for pool in [self._pools.pop(key) for key in idle]:
            await pool.connections.aclose()


@dataclass(slots=True)
class _Pool:
    """The connections to one origin."""

    connections: httpcore.AsyncConnectionPool
    users: int = 0
    used_at: float = 0.0


async def _send(pool: httpcore.AsyncConnectionPool, request: httpcore.Request) -> Reply:
    request.extensions["timeout"] = _TIMEOUTS
    content = b""
    reply = await pool.handle_async_request(request)
    try:
        async for chunk in reply.aiter_stream():
            content += chunk[: REPLY_BYTES - len(content)]
            if len(content) >= REPLY_BYTES:
                break
        return Reply(reply.status, content)
    finally:
        await reply.aclose()


_TIMEOUTS = {"connect": CONNECT_SECONDS, "pool": CONNECT_SECONDS, "read": TOTAL_SECONDS, "write": TOTAL_SECONDS}
