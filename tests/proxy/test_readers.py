"""Readers that are slow, and readers that are many: what they cost a process, and that they miss nothing."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from a2a_host.services.processes import Process
from benchmarks.subscribers import idle_streams
from benchmarks.wire import Endpoint
from tests.cases.reading import states
from tests.proxy.conftest import Site
from tests.proxy.executors import CHUNKS
from tests.support.deployment import HOST, wait_until
from tests.support.events import Event

pytestmark = pytest.mark.timeout(400)  # Processes start here, if these tests are alone.

SLOW = 3
GROWTH = 16 * 1024 * 1024
"""Bytes that slow readers may cost a process in all, however much there is to read (docs/events.md)."""
STREAMS = 1000
KIB_EACH = 16


def resident(process: Process) -> int:
    """Memory of a process, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def numbers(events: list[Event]) -> list[int]:
    """The chunks of the flood that updates hold, in their order."""
    updates = [event.response["artifactUpdate"] for event in events if event.kind == "artifactUpdate"]
    return [int(part["text"][:5]) for update in updates for part in update["artifact"]["parts"]]


@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("binding", ["jsonrpc", "grpc"])
def test_slow_readers_cost_neither_memory_nor_other_readers(site: Site, binding: str) -> None:
    """32 MB for three clients that read one event and then none. Who reads has all of it long before them.

    The streams are in another process than the agent, which has to know all of its task.
    """
    peer = site.replica(1, "flood", binding)
    agent = site.replica(0, "flood")
    process = (site.grpcs if binding == "grpc" else site.webs)[1].process
    task = agent.say()["id"]

    def has_come(seq: int) -> bool:
        [(last,)] = site.deployment.query("SELECT last_seq FROM tasks_app_task WHERE id = %s", [task])
        return bool(last >= seq)

    streams = [peer.subscribe(task) for _ in range(SLOW)]
    try:
        assert [stream.next().state for stream in streams] == ["INPUT_REQUIRED"] * SLOW
        with ThreadPoolExecutor(1) as pool, peer.subscribe(task) as quick:
            reading = pool.submit(quick.rest)
            agent.start("go", taskId=task)
            wait_until(lambda: has_come(CHUNKS // 2), "one half", 120)  # The process remembers all it will by now.
            before = resident(process)
            wait_until(lambda: has_come(CHUNKS), "the rest", 120)
            assert numbers(reading.result()) == list(range(CHUNKS))
        assert resident(process) - before < GROWTH
        for stream in streams:
            events = stream.rest()
            assert numbers(events) == list(range(CHUNKS))
            assert states(events)[-1] == "COMPLETED"
        assert resident(process) - before < GROWTH
    finally:
        for stream in streams:
            stream.close()


def test_many_idle_streams_have_their_price_and_get_the_end(site: Site) -> None:
    web = site.webs[0]
    endpoint = Endpoint.parse(f"http://{HOST}:{web.port}/agents/hold", {"a2a-version": "1.0"})
    result: Any = idle_streams(endpoint, STREAMS, lambda: resident(web.process))
    assert result.errors == []
    assert result.ended == result.opened > STREAMS
    assert result.kib_each < KIB_EACH


@pytest.mark.spec("3.5.2")
def test_streams_go_on_when_the_listening_connection_is_lost(site: Site) -> None:
    """Also with events that came meanwhile, and while every connection to the database breaks."""
    peer = site.at("steps-worker")
    with peer.say_streaming("steps 30 60") as stream:
        heard = stream.until("WORKING")
        while not any(event.kind == "artifactUpdate" for event in heard):
            heard.append(stream.next())
        for which in ("query LIKE 'LISTEN%%'", "application_name <> 'the-tests'"):
            [(ended,)] = site.deployment.query(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                f" WHERE datname = current_database() AND pid <> pg_backend_pid() AND {which}"
            )
            assert ended >= 2
            began = time.monotonic()
            heard.append(stream.next())
            assert time.monotonic() - began < 10
        heard += stream.rest()
    assert [event.id for event in heard] == list(range(heard[0].id, heard[0].id + len(heard)))
    assert states(heard)[-1] == "COMPLETED"
