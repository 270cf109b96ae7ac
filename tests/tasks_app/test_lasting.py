"""What a host cannot do without, when it ends: the host says so, and takes nothing more that it could not answer."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from a2a_host.bindings.grpc import health as health_module
from a2a_host.bindings.grpc.health import Health
from a2a_host.bindings.grpc.transport.server import Server
from a2a_host.bindings.health import is_healthy, serve_health
from protocol.errors import UnavailableError
from tasks_app.execution.lasting import Lasting
from tasks_app.live import hub as hub_module
from tasks_app.processes import process
from tests.tasks_app.world import World, soon, until
from tests.tasks_app.writes import creation


async def ask_health() -> tuple[int, dict[str, Any]]:
    """Status and body of GET /healthz."""
    said: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await serve_health({"type": "http", "method": "GET", "headers": []}, None, send)
    return said[0]["status"], json.loads(said[1]["body"])


async def test_a_journal_that_ends_breaks_the_host(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its task fails where no error was expected: whoever keeps the process up is told, and so is who asks."""
    host = world.hosts[0]
    monkeypatch.setattr(process, "_current", host)
    health = Health(host, [])
    broken = asyncio.Event()
    host.lasting.on_broken = broken.set
    agent = await world.add_agent()
    assert await ask_health() == (200, {"status": "ok"})

    def stumble(*_: object) -> None:
        raise KeyError("a mistake")

    monkeypatch.setattr(host.hub, "publish", stumble)
    host.journal.submit(creation(agent.id))
    await soon(broken.wait())
    assert "The journal ended, and the host cannot do without it" in caplog.text
    assert "a mistake" in caplog.text
    assert await ask_health() == (503, {"status": "unavailable"})
    assert await health.status("") == HealthCheckResponse.NOT_SERVING
    with pytest.raises(UnavailableError):
        await soon(host.journal.submit(creation(agent.id)))
    assert await world.query("SELECT count(*) FROM tasks_app_task") == [(1,)]


async def test_an_end_that_nobody_asked_for_counts_however_it_comes() -> None:
    async def fail() -> None:
        raise KeyError

    async def leak() -> None:
        """Awaits what somebody else has cancelled."""
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async def leave() -> None:
        return

    for end in (fail, leak, leave):
        lasting, broken = Lasting(), asyncio.Event()
        lasting.on_broken = broken.set
        lasting.keep(asyncio.create_task(end()))
        await soon(broken.wait())
        assert lasting.broken


async def test_an_end_that_was_asked_for_is_none(world: World) -> None:
    host = await world.start_host()
    world.hosts.remove(host)
    waiting = asyncio.create_task(asyncio.Event().wait())
    host.lasting.keep(waiting)  # type: ignore[arg-type]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not host.lasting.broken
    assert await is_healthy(host)
    await soon(host.stop())
    assert not host.lasting.broken


async def test_who_watches_hears_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_module, "_LOOK_SECONDS", 0.01)
    host = world.hosts[0]
    health = Health(host, ["a"])
    server = Server(health.methods.get, largest=1000, room=1000, keep_alive=60.0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        await server.start(listener)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.getsockname()[1]}") as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(HealthCheckRequest(service="a"))
            assert (await watch.read()).status == HealthCheckResponse.SERVING
            host.lasting.broken = True
            assert (await watch.read()).status == HealthCheckResponse.NOT_SERVING
            watch.cancel()
        await server.stop(0)


async def test_the_safety_net_of_streams_outlives_a_bad_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "_SAFETY_NET_SECONDS", 0.01)
    host = await world.start_host()
    errors: list[Exception] = [KeyError(), UnavailableError(1)]
    turns = 0

    async def end_deleted() -> None:
        nonlocal turns
        turns += 1
        if errors:
            raise errors.pop(0)

    monkeypatch.setattr(host.hub, "_end_deleted", end_deleted)
    await until(lambda: turns >= 4 or host.lasting.broken, "more turns")
    assert not host.lasting.broken
