"""A database for the tests of tasks. They commit: every test leaves its tables empty."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections

from agents.outbound.listed import read_list
from agents.outbound.rules import OutboundRules
from agents.registry import AgentEntry
from tasks_app.push.delivery import Deliverer
from tasks_app.tables.database import database_dsn
from tests.support.receiver import Receiver
from tests.tasks_app.world import World
from tests.tasks_app.writes import Desk, open_desk

_TABLES = (
    *("tasks_app_task", "tasks_app_message", "tasks_app_event", "tasks_app_receipt", "tasks_app_taskcount"),
    *("tasks_app_pushconfig", "agents_usage", "agents_skill", "agents_agent", "agents_apikey", "tasks_app_listening"),
    *("agents_signingkey", "tasks_app_erasure"),
    *("tasks_app_delivery", "tasks_app_execution", "tasks_app_storedpart", "tasks_app_auditentry", "tasks_app_process"),
)


@pytest.fixture(scope="package")
def kept_connection(django_db_setup: None) -> Iterator[None]:
    """The registry's thread keeps its connection from test to test: opening one costs more than most tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connections.settings["default"], "CONN_MAX_AGE", None)
        yield
        asyncio.run(sync_to_async(connections.close_all)())


@pytest.fixture
def database(db: None, broker: str, kept_connection: None) -> Iterator[str]:
    """The connection string of the test database."""
    dsn = database_dsn()
    yield dsn
    with psycopg.connect(dsn, autocommit=True) as connection, connection.pipeline():
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table}".encode())


@pytest_asyncio.fixture
async def world(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A world with one web host, which does not wait long for runs that never end."""
    monkeypatch.setattr("tasks_app.execution.host._SHUTDOWN_GRACE_SECONDS", 0.1)
    monkeypatch.setattr("tasks_app.execution.sweeping.CONFIRM_SECONDS", 0)
    world = World(database)
    try:
        await world.start_host()
        yield world
    finally:
        await world.stop()


@pytest_asyncio.fixture
async def agent(world: World) -> AgentEntry:
    """An agent that echoes."""
    return await world.add_agent()


@pytest_asyncio.fixture
async def desk(world: World, agent: AgentEntry) -> AsyncIterator[Desk]:
    """A journal of its own."""
    async with open_desk(world.dsn) as desk:
        yield desk


async def empty_tables(world: World) -> None:
    """Forget every task, for tests that run many programs in one world."""
    for table in _TABLES[:6]:
        await world.query(f"DELETE FROM {table}")


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    """A receiver of webhooks. Its paths are each of one test."""
    with Receiver() as receiver:
        yield receiver


@pytest_asyncio.fixture
async def delivery(world: World) -> AsyncIterator[Deliverer]:
    """The deliveries of the world's host, which may call this machine."""
    rules = OutboundRules(read_list(["127.0.0.1"]))
    world.hosts[0].outbound = rules
    delivery = Deliverer(world.hosts[0].store, rules, lambda: world.hosts[0].registry.signer)
    yield delivery
    await delivery.stop()
