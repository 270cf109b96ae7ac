"""The addresses behind host names, without letting slow name servers keep those waiting who need others.

A look-up blocks a thread for as long as the system's resolver takes, which may be a minute. There is one at a time for
a name, however many ask. Names that resolved quickly last time have threads of their own, so have those that nobody
asked for yet; slow ones share a few. A failure is remembered for a moment. A name that resolved before is where it was
then, unless its name servers say that it does not exist: none that hang or fail, and no number of names, make a known
host unreachable.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address

from agents.outbound.listed import Address

RESOLVE_SECONDS = 5.0
"""How long to wait for a name that nobody knows."""
KNOWN_SECONDS = 1.0
"""How long to wait for news of a name that resolved before."""
SLOW_SECONDS = 1.0
"""What a look-up may take and still count as quick."""
FAILURE_SECONDS = 3.0
"""How long a failure is remembered."""
KNOWN_FOR_SECONDS = 3600.0
"""How long after its last look-up that succeeded a name may be where it was then."""
_REMEMBERED = 10_000  # names
_GONE = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})  # The others say that nobody could be asked.

_LATE = "the host name could not be resolved in time"
_FAILED = "the host name cannot be resolved"

LookUp = Callable[[str], Sequence[Address]]


class UnresolvedError(Exception):
    """There is no address. The message is short and may be shown to the caller who gave the name."""


class Standing(Enum):
    """What is known of a name, and how many look-ups there are at a time of all that stand so."""

    QUICK = 16
    UNKNOWN = 64
    SLOW = 8


@dataclass(slots=True)
class _Name:
    """What is known of one name; the times are the event loop's. `looking` gives addresses, or why there are none."""

    standing: Standing = Standing.UNKNOWN
    found: Sequence[Address] = ()
    found_at: float = 0.0
    failure: str = ""
    failed_until: float = 0.0
    looking: asyncio.Task[Sequence[Address] | str] | None = field(default=None, repr=False)

    @property
    def known(self) -> bool:
        """Whether it resolved before, and not too long ago."""
        return bool(self.found) and _time() < self.found_at + KNOWN_FOR_SECONDS

    def fail(self, failure: str) -> None:
        """Remember why it failed."""
        self.failure, self.failed_until = failure, _time() + FAILURE_SECONDS


class Resolver:
    """The look-ups of one event loop."""

    def __init__(self, look_up: LookUp) -> None:
        self._look_up = look_up
        self._free = {standing: asyncio.Semaphore(standing.value) for standing in Standing}
        self._names: dict[str, _Name] = {}

    async def resolve(self, host: str) -> Sequence[Address]:
        """The addresses of a host. Raises UnresolvedError if there is none within RESOLVE_SECONDS."""
        name = self._name(host)
        if name.failure and _time() < name.failed_until:
            raise UnresolvedError(name.failure)
        if name.looking is None:
            name.looking = asyncio.create_task(self._look(host, name), name=f"resolve {host}")
        try:
            async with asyncio.timeout(KNOWN_SECONDS if name.known else RESOLVE_SECONDS):
                found = await asyncio.shield(name.looking)
        except TimeoutError:
            found = _LATE
            if name.standing is Standing.SLOW and not name.known:  # It did not wait for a thread only.
                name.fail(_LATE)
        if isinstance(found, str):
            if name.known:
                return name.found
            raise UnresolvedError(found)
        return found

    async def _look(self, host: str, name: _Name) -> Sequence[Address] | str:
        """One look-up, whoever waits for it."""
        free = self._free[name.standing]
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                await free.acquire()
        except TimeoutError:
            name.looking = None
            return _LATE
        started = _time()
        slow = asyncio.get_running_loop().call_later(SLOW_SECONDS, _slow, name)
        try:
            name.found = await _in_thread(lambda: self._look_up(host))
        except (OSError, UnicodeError) as error:
            if isinstance(error, socket.gaierror) and error.errno in _GONE:
                name.found = ()
            if not name.known:
                name.fail(_FAILED)
            return _FAILED
        else:
            name.found_at, name.failure = _time(), ""
            name.standing = Standing.QUICK if name.found_at < started + SLOW_SECONDS else Standing.SLOW
            return name.found
        finally:
            slow.cancel()
            free.release()
            name.looking = None

    def _name(self, host: str) -> _Name:
        found = self._names.pop(host, None) or _Name()
        self._names[host] = found  # the one that was asked for last is the last to be forgotten
        if len(self._names) > _REMEMBERED:
            oldest = next(iter(self._names))
            if self._names[oldest].looking is None:
                del self._names[oldest]
        return found


def look_up(host: str) -> Sequence[Address]:
    """What the system says: hosts files, name servers. Blocks. Raises OSError, UnicodeError."""
    found: Iterable[tuple[object, ...]] = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = [ip_address(entry[4][0]) for entry in found]  # type: ignore[index]
    return list(dict.fromkeys(addresses))


def _time() -> float:
    return asyncio.get_running_loop().time()


def _slow(name: _Name) -> None:
    name.standing = Standing.SLOW


async def _in_thread(work: Callable[[], Sequence[Address]]) -> Sequence[Address]:
    """In a thread that does not hold up the end of the process, as one of a pool would."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Sequence[Address]] = loop.create_future()

    def settle(found: Sequence[Address] | Exception) -> None:
        if done.done():
            return
        if isinstance(found, Exception):
            done.set_exception(found)
        else:
            done.set_result(found)

    def run() -> None:
        found: Sequence[Address] | Exception
        try:
            found = work()
        except Exception as error:
            found = error
        with suppress(RuntimeError):  # The loop was closed meanwhile.
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=run, name="resolver", daemon=True).start()
    return await done
