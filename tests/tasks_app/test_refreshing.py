"""What a process knows of agents and keys, when the announcement of a change is lost or cannot be followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from django.db import OperationalError
from psycopg.conninfo import make_conninfo

from agents.access import authenticate
from agents.keys import hash_key
from agents.models import ApiKey
from agents.registry import AgentEntry
from agents.threads import in_thread
from protocol.errors import AgentNotFoundError, UnauthenticatedError
from tasks_app.execution.host import Host
from tasks_app.live import refreshing
from tasks_app.processes.process import make_host
from tests.support.wire_cut import WireCut, open_wire_cut
from tests.tasks_app.world import World, soon, until

BOUND = 10.0  # seconds, as docs/guarantees.md has it


@pytest_asyncio.fixture
async def wire(world: World) -> AsyncIterator[WireCut]:
    async with open_wire_cut(world.dsn) as wire:
        yield wire


async def deaf_host(world: World, wire: WireCut) -> Host:
    """A host whose listening connection leads through the wire, and does not notice that nothing comes any more."""
    host = make_host("web")
    host.listener._dsn = make_conninfo(wire.dsn, keepalives=0, tcp_user_timeout=0)
    await soon(host.start())
    world.hosts.append(host)
    return host


async def issue_key() -> str:
    _, key = await in_thread(lambda: ApiKey.issue("a key"))
    return str(key)


async def test_a_key_is_revoked_and_an_agent_disabled_while_nothing_is_heard(
    world: World, wire: WireCut, agent: AgentEntry
) -> None:
    host = await deaf_host(world, wire)
    key = await issue_key()
    await until(lambda: host.registry.key(hash_key(key)), "the key, by its announcement")
    await wire.fall_silent()
    loop = asyncio.get_running_loop()
    start = loop.time()
    await world.query("UPDATE agents_apikey SET enabled = false")
    await world.query("UPDATE agents_agent SET enabled = false")
    assert authenticate(host.registry, agent, f"Bearer {key}", None).owner == "a key", "it was not told"
    await until(lambda: host.registry.key(hash_key(key)) is None, "the end of the key")
    assert loop.time() - start < BOUND
    with pytest.raises(UnauthenticatedError):
        authenticate(host.registry, agent, f"Bearer {key}", None)
    with pytest.raises(AgentNotFoundError):
        host.registry.get(agent.slug)
    wire.be_heard()


async def test_a_read_that_fails_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The change was announced once, and no look finds it."""
    monkeypatch.setattr(refreshing, "_LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(refreshing, "_RETRY_SECONDS", 0.01)
    host = await world.start_host()
    key = await issue_key()
    await until(lambda: host.registry.key(hash_key(key)), "the key")
    errors: list[Exception] = [OperationalError("gone"), KeyError(), OperationalError("gone")]
    read = host.registry._read

    def stumble() -> object:
        if errors:
            raise errors.pop(0)
        return read()

    monkeypatch.setattr(host.registry, "_read", stumble)
    await world.query("UPDATE agents_apikey SET enabled = false")
    await until(lambda: host.registry.key(hash_key(key)) is None, "the end of the key")
    assert not errors
    assert "Changes of agents and keys wait for the database: OperationalError" in caplog.text


async def test_nothing_is_read_while_nothing_changes(
    world: World, agent: AgentEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The use of a key is no change."""
    monkeypatch.setattr(refreshing, "_LOOK_SECONDS", 0.01)
    host = await world.start_host()
    key = await issue_key()
    await until(lambda: host.registry.key(hash_key(key)), "the key")
    looks, reads = 0, 0
    is_behind, load = host.refreshing._is_behind, host.registry.load

    async def look() -> bool:
        nonlocal looks
        looks += 1
        return await is_behind()

    async def read() -> None:
        nonlocal reads
        reads += 1
        await load()

    monkeypatch.setattr(host.refreshing, "_is_behind", look)
    monkeypatch.setattr(host.registry, "load", read)
    await world.query("UPDATE agents_apikey SET last_used_at = now()")
    await until(lambda: looks >= 5, "looks")
    assert reads == 0
    await world.query("UPDATE agents_agent SET description = 'other'")
    await until(lambda: reads, "the change")
