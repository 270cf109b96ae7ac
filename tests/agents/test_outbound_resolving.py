"""Slow name servers keep nobody waiting who needs others."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address

import pytest

from agents.outbound import resolving
from agents.outbound.listed import Address
from agents.outbound.resolving import Resolver, Standing, UnresolvedError

PATIENCE = 20.0
OLD, NEW = [ip_address("192.0.2.1")], [ip_address("192.0.2.2")]
LATE = r"^the host name could not be resolved in time$"
FAILED = r"^the host name cannot be resolved$"


class System:
    """What stands for the resolver of the system: names that `hang` says block until `release`."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.blocked = 0
        self.addresses: Sequence[Address] = OLD
        self.missing: set[str] = set()
        self.failure: OSError = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        self.hang: Callable[[str], bool] = lambda host: False
        self.release = threading.Event()
        self._lock = threading.Lock()

    def look_up(self, host: str) -> Sequence[Address]:
        """Blocks."""
        with self._lock:
            self.asked[host] += 1
        if self.hang(host):
            self._block(1)
            assert self.release.wait(PATIENCE)
            self._block(-1)
        if host in self.missing:
            raise self.failure
        return self.addresses

    def _block(self, more: int) -> None:
        with self._lock:
            self.blocked += more


@pytest.fixture
def system() -> Iterator[System]:
    system = System()
    yield system
    system.release.set()


@pytest.fixture
def resolver(system: System) -> Resolver:
    return Resolver(system.look_up)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 threads change it
            await asyncio.sleep(0.005)


def ask(resolver: Resolver, hosts: Sequence[str]) -> asyncio.Future[list[Sequence[Address] | BaseException]]:
    """All of them at once."""
    return asyncio.gather(*(resolver.resolve(host) for host in hosts), return_exceptions=True)


async def test_a_known_name_has_threads_of_its_own(
    system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked up, not remembered, however many others hang."""
    monkeypatch.setattr(resolving, "SLOW_SECONDS", PATIENCE)
    assert await resolver.resolve("live.test") == OLD
    system.hang = lambda host: host.endswith(".hanging.test")
    hanging = ask(resolver, [f"{n}.hanging.test" for n in range(1000)])
    await until(lambda: system.blocked == Standing.UNKNOWN.value)
    system.addresses = NEW
    for _ in range(3):
        assert await resolver.resolve("live.test") == NEW
    assert system.blocked == Standing.UNKNOWN.value
    system.release.set()
    await hanging


async def test_a_known_name_is_where_it_was_when_every_name_hangs(
    system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when names that resolved take all the threads of those that did."""
    monkeypatch.setattr(resolving, "KNOWN_SECONDS", 0.1)
    monkeypatch.setattr(resolving, "SLOW_SECONDS", PATIENCE)
    names = [f"{n}.hanging.test" for n in range(Standing.QUICK.value)]
    assert await ask(resolver, [*names, "live.test"]) == [OLD] * (len(names) + 1)
    system.hang = lambda host: True
    assert await ask(resolver, names) == [OLD] * len(names)
    assert system.blocked == Standing.QUICK.value
    assert await resolver.resolve("live.test") == OLD
    assert (system.blocked, system.asked["live.test"]) == (Standing.QUICK.value, 1)


async def test_a_name_that_is_known_for_long_is_not_known(
    system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await resolver.resolve("live.test") == OLD
    monkeypatch.setattr(resolving, "KNOWN_FOR_SECONDS", 0.0)
    monkeypatch.setattr(resolving, "RESOLVE_SECONDS", 0.05)
    system.hang = lambda host: True
    with pytest.raises(UnresolvedError, match=LATE):
        await resolver.resolve("live.test")


@pytest.mark.parametrize(
    "error", [socket.gaierror(socket.EAI_AGAIN, ""), socket.gaierror(socket.EAI_FAIL, ""), OSError()]
)
async def test_a_known_name_is_where_it_was_when_nobody_can_be_asked(
    system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """For as long as one that hangs, and no longer. It is looked up every time."""
    assert await resolver.resolve("live.test") == OLD
    system.failure, system.missing = error, {"live.test", "stranger.test"}
    for _ in range(3):
        assert await resolver.resolve("live.test") == OLD
    assert system.asked["live.test"] == 4
    with pytest.raises(UnresolvedError, match=FAILED):
        await resolver.resolve("stranger.test")
    system.missing, system.addresses = set(), NEW
    assert await resolver.resolve("live.test") == NEW
    system.missing = {"live.test"}
    monkeypatch.setattr(resolving, "KNOWN_FOR_SECONDS", 0.0)
    with pytest.raises(UnresolvedError, match=FAILED):
        await resolver.resolve("live.test")


async def test_a_known_name_is_where_it_was_when_its_name_servers_give_up_late(
    system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those that are dead do: the look-up hangs, and fails when nobody waits for it any more."""
    monkeypatch.setattr(resolving, "KNOWN_SECONDS", 0.05)
    monkeypatch.setattr(resolving, "SLOW_SECONDS", 0.01)
    assert await resolver.resolve("live.test") == OLD
    system.failure, system.missing = socket.gaierror(socket.EAI_AGAIN, ""), {"live.test"}
    system.hang = lambda host: True
    for _ in range(2):
        assert await resolver.resolve("live.test") == OLD
        system.release.set()
        await until(lambda: resolver._names["live.test"].looking is None)
        system.release.clear()
    assert system.asked["live.test"] == 3


@pytest.mark.parametrize("code", [socket.EAI_NONAME, socket.EAI_NODATA])
async def test_a_name_that_is_gone_is_not_where_it_was(system: System, resolver: Resolver, code: int) -> None:
    system.failure = socket.gaierror(code, "")
    assert await resolver.resolve("gone.test") == OLD
    system.missing = {"gone.test"}
    for _ in range(3):
        with pytest.raises(UnresolvedError, match=FAILED):
            await resolver.resolve("gone.test")
    assert system.asked["gone.test"] == 2


async def test_who_asks_for_the_same_name_shares_a_look_up(system: System, resolver: Resolver) -> None:
    system.hang = lambda host: True
    answers = ask(resolver, ["same.test"] * 100)
    await until(lambda: system.blocked)
    system.release.set()
    assert await answers == [OLD] * 100
    assert system.asked == {"same.test": 1}
    assert await resolver.resolve("same.test") == OLD  # Nothing is remembered of what succeeds.
    assert system.asked == {"same.test": 2}


async def test_a_failure_is_remembered_for_a_moment(
    system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.missing = {"missing.test"}
    for _ in range(3):
        with pytest.raises(UnresolvedError, match=FAILED):
            await resolver.resolve("missing.test")
    assert system.asked == {"missing.test": 1}
    monkeypatch.setattr(resolving, "FAILURE_SECONDS", 0.0)
    system.missing = {"other.test"}
    for _ in range(3):
        with pytest.raises(UnresolvedError, match=FAILED):
            await resolver.resolve("other.test")
    assert system.asked == {"missing.test": 1, "other.test": 3}


async def test_a_late_answer_counts(system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for one that is late, and nobody asks a second time meanwhile."""
    monkeypatch.setattr(resolving, "SLOW_SECONDS", 0.01)
    monkeypatch.setattr(resolving, "RESOLVE_SECONDS", 0.1)
    system.hang = lambda host: True
    for _ in range(3):
        with pytest.raises(UnresolvedError, match=LATE):
            await resolver.resolve("late.test")
    system.release.set()
    await until(lambda: resolver._names["late.test"].found)
    monkeypatch.setattr(resolving, "RESOLVE_SECONDS", PATIENCE)
    assert system.asked == {"late.test": 1}
    assert await resolver.resolve("late.test") == OLD


async def test_slow_names_share_a_few_threads(
    system: System, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once they are known to be slow, names that nobody has asked for yet do not wait for them."""
    monkeypatch.setattr(resolving, "SLOW_SECONDS", 0.01)
    monkeypatch.setattr(resolving, "FAILURE_SECONDS", 0.0)
    slow = [f"{n}.slow.test" for n in range(Standing.UNKNOWN.value)]
    system.missing = set(slow)
    system.hang = lambda host: host in slow
    first = ask(resolver, slow)
    await until(lambda: system.blocked == len(slow))
    await until(lambda: all(resolver._names[host].standing is Standing.SLOW for host in slow))
    system.release.set()
    await first
    system.release.clear()
    again = ask(resolver, slow)
    await until(lambda: system.blocked == Standing.SLOW.value)
    assert await ask(resolver, [f"stranger-{n}.test" for n in range(100)]) == [OLD] * 100
    assert system.blocked == Standing.SLOW.value
    system.release.set()
    assert [str(error) for error in await again] == ["the host name cannot be resolved"] * len(slow)


async def test_a_hanging_look_up_does_not_hold_up_the_end_of_the_process(system: System, resolver: Resolver) -> None:
    system.hang = lambda host: True
    asking = asyncio.create_task(resolver.resolve("hanging.test"))
    await until(lambda: system.blocked)
    assert {thread.daemon for thread in threading.enumerate() if thread.name == "resolver"} == {True}
    asking.cancel()
    system.release.set()
