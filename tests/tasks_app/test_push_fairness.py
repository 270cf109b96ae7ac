"""A thousand webhooks that hang do not hold up one that answers, whether their receivers hang or their name servers."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest

from agents.outbound import client as outbound
from agents.outbound.listed import Address, read_list
from agents.outbound.resolving import Standing as NameStanding
from agents.outbound.rules import OutboundRules
from agents.registry import AgentEntry
from protocol.ids import new_id
from tasks_app.push.delivery import Deliverer
from tasks_app.push.places import PER_RECEIVER, Standing
from tests.support.receiver import Receiver
from tests.tasks_app.webhooks import steps, tell
from tests.tasks_app.world import PATIENCE, World, until

DEAD = 1000

# One task with one event for each of the configs, as the journal would have left them.
_TASKS = """INSERT INTO tasks_app_task (id, agent_id, owner, context_id, state, status, status_at, created_at, last_seq,
        message_count, version, attempt, dialect, request, has_push_configs, push_due_at)
    SELECT id, %s, 'alice', id, 3, '{"state":"TASK_STATE_COMPLETED"}', now(), now(), 1, 1, 1, 1, 'JSONRPC/1.0', '{}',
        true, now() FROM unnest(%s::text[]) AS id"""
_EVENTS = """INSERT INTO tasks_app_event (task_id, seq, kind, body, append, last_chunk, attempt, created_at)
    SELECT id, 1, 1, '{"state":"TASK_STATE_COMPLETED"}', false, false, 1, now() FROM unnest(%s::text[]) AS id"""
_CONFIGS = """INSERT INTO tasks_app_pushconfig (task_id, config_id, url, token, scheme, credentials, version,
        created_at, cursor, last_seq) SELECT id, 'c', url, '', '', '', '1.0', now(), 0, 0
    FROM unnest(%s::text[], %s::text[]) AS c(id, url)"""


class Tarpit:
    """A server that takes connections and requests, and never answers."""

    def __init__(self) -> None:
        self.open = 0
        self.port = 0

    async def _hang(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while await reader.read(65536):
                pass
        finally:
            self.open -= 1
            writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Tarpit]:
        """On a free port of loopback."""
        server = await asyncio.start_server(self._hang, "127.0.0.1", 0, backlog=DEAD)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


async def add_dead(world: World, entry: AgentEntry, urls: list[str]) -> list[str]:
    """A task for each URL, with an event that waits for it."""
    ids = [new_id() for _ in urls]
    await world.query(_TASKS, [entry.id, ids])
    await world.query(_EVENTS, [ids])
    await world.query(_CONFIGS, [ids, urls])
    return ids


@pytest.mark.parametrize("receivers", ["each its own", "all the same"])
async def test_a_live_webhook_does_not_wait_for_the_dead(
    world: World, delivery: Deliverer, receiver: Receiver, receivers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that the worker knows, nor one that it never heard of. Nothing has ended at the dead ones by then."""
    monkeypatch.setattr(outbound, "TOTAL_SECONDS", 100.0)  # however slow the machine, nothing at the dead ones ends
    entry = await world.add_agent(steps, push_notifications=True)
    async with Tarpit().running() as tarpit:
        hosts = [f"dead-{n}.localhost" if receivers == "each its own" else "localhost" for n in range(DEAD)]
        ids = await add_dead(world, entry, [f"http://{host}:{tarpit.port}/" for host in hosts])
        known = await tell(world, entry, receiver.url("/known"))
        await delivery.deliver([known])
        await asyncio.to_thread(receiver.wait, "/known", 4)
        for bell in range(0, len(ids), 100):
            await delivery.deliver(ids[bell : bell + 100])
        for number in range(3):
            task_id = await tell(world, entry, receiver.url("/known"))
            await delivery.deliver([task_id])
            stranger = await tell(world, entry, f"http://stranger-{number}.localhost:{receiver.port}/stranger-{number}")
            await delivery.deliver([stranger])
            await asyncio.to_thread(receiver.wait, f"/stranger-{number}", 4)
            await asyncio.to_thread(receiver.wait, "/known", 4 * (number + 2))
        assert 0 < tarpit.open <= (DEAD if receivers == "each its own" else PER_RECEIVER)
        assert await world.query("SELECT count(*) FROM tasks_app_delivery WHERE error <> ''") == [(0,)]
        await delivery.stop()


class HangingNames:
    """What stands for the resolver of the system: names of `dead.test` hang until the end, others are here."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.hanging = threading.Semaphore(0)
        self._end = threading.Event()

    def look_up(self, host: str) -> Sequence[Address]:
        """Blocks."""
        if host.endswith(".dead.test"):
            self.hanging.release()
            assert self._end.wait(2 * PATIENCE)
            raise OSError
        self.asked[host] += 1
        return [ip_address("127.0.0.1")]

    def end(self) -> None:
        """Nothing hangs any more."""
        self._end.set()


async def ledger(world: World, task_id: str, count: int) -> list[tuple[str]]:
    """The errors of a task's deliveries, once there are so many: a line is written when the receiver has answered."""
    async with asyncio.timeout(PATIENCE):
        while True:
            rows = await world.query("SELECT error FROM tasks_app_delivery WHERE task_id = %s", [task_id])
            if len(rows) >= count:
                return rows


async def test_a_live_webhook_does_not_wait_for_dead_name_servers(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that was found before is looked up in time, however many names do not come back."""
    names = HangingNames()
    monkeypatch.setattr(outbound, "_IDLE_SECONDS", 0.001)  # so that each request looks its host up
    rules = OutboundRules(read_list(["127.0.0.1"]), look_up=names.look_up)
    delivery = Deliverer(world.hosts[0].store, rules)
    world.hosts[0].outbound = rules
    entry = await world.add_agent(steps, push_notifications=True)
    url = f"http://live.test:{receiver.port}/found"
    await delivery.deliver([await tell(world, entry, url)])
    await asyncio.to_thread(receiver.wait, "/found", 4)
    ids = await add_dead(world, entry, [f"http://{n}.dead.test/" for n in range(DEAD)])
    for bell in range(0, len(ids), 100):
        await delivery.deliver(ids[bell : bell + 100])
    for _ in range(NameStanding.UNKNOWN.value):
        assert await asyncio.to_thread(names.hanging.acquire, timeout=PATIENCE)
    for number in range(3):
        before = names.asked["live.test"]
        live = await tell(world, entry, url)
        await delivery.deliver([live])
        await asyncio.to_thread(receiver.wait, "/found", 4 * (number + 2))
        assert names.asked["live.test"] > before
        assert await ledger(world, live, 4) == [("",)] * 4
    names.end()
    await delivery.stop()


async def test_failing_webhooks_share_a_few_places(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    """However many are to be tried again, and however long they hang."""
    entry = await world.add_agent(steps, push_notifications=True)
    async with Tarpit().running() as tarpit:
        ids = await add_dead(world, entry, [f"http://dead-{n}.localhost:{tarpit.port}/" for n in range(400)])
        await world.query("UPDATE tasks_app_pushconfig SET attempts = 3, failing_since = now(), due_at = now()")
        await world.query("UPDATE tasks_app_pushconfig SET last_seq = 1")
        await world.query("UPDATE tasks_app_task SET push_due_at = NULL")
        await delivery.sweep()
        await until(lambda: tarpit.open == Standing.SLOW.value, "the places of failing webhooks in use")
        task_id = await tell(world, entry, receiver.url("/beside"))
        await delivery.deliver([task_id])
        await asyncio.to_thread(receiver.wait, "/beside", 4)
        assert tarpit.open == Standing.SLOW.value
        held = "SELECT count(*) FROM tasks_app_pushconfig WHERE lease_until > now() AND attempts > 0"
        claimed = await world.query(held)
        assert claimed == [(300,)]
        assert len(ids) == 400
        await delivery.stop()
        assert await world.query("SELECT count(*) FROM tasks_app_pushconfig WHERE lease_until > now()") == [(0,)]


async def test_who_finds_no_place_gives_the_claim_back(
    world: World, delivery: Deliverer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.push.places.WAIT_SECONDS", 0.05)
    monkeypatch.setattr("tasks_app.push.delivery._LOOK_SECONDS", 0.05)
    entry = await world.add_agent(steps, push_notifications=True)
    async with Tarpit().running() as tarpit:
        ids = await add_dead(world, entry, [f"http://localhost:{tarpit.port}/"] * (PER_RECEIVER + 10))
        delivery.start()
        await delivery.deliver(ids)
        waiting = (
            "SELECT count(*) FROM tasks_app_pushconfig WHERE lease_until IS NULL AND due_at > now() AND attempts = 0"
        )
        async with asyncio.timeout(20):
            while await world.query(waiting) != [(10,)]:  # noqa: ASYNC110 the database says so
                await asyncio.sleep(0.02)
        assert tarpit.open == PER_RECEIVER
        assert await world.query("SELECT * FROM tasks_app_delivery") == []
        await delivery.stop()
