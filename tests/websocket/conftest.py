"""A host with agents for the tests of the WebSocket binding, and clients of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, Web, wait_until

KEYS = {f"a2a_key-of-the-websocket-user-{number:03}": f"user-{number:03}" for number in range(200)}
EXTENSION = "https://e.test/extensions/geo/v1"
AGENTS = [
    ("quiet", "--simulator", "steps", "--no-streaming"),
    ("small", "--simulator", "data", "--max-request-bytes", "4096"),
    ("hidden", "--simulator", "echo", "--no-enabled"),
    ("extended", "--simulator", "echo", "--required-extension", EXTENSION),
    ("torrent", "--executor", "tests.websocket.executors.Torrent"),
]


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys(KEYS)
        deployment.run(*(("agent", "register", *agent, "--open") for agent in AGENTS))
        yield deployment


@pytest.fixture(scope="package")
def web(deployment: Deployment) -> Web:
    return deployment.start_web()


@pytest.fixture(scope="package")
def client() -> Iterator[httpx.Client]:
    with make_client() as client:
        yield client


_keys = iter(KEYS.items())


@pytest.fixture
def alice(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    key, owner = next(_keys)
    return Caller(client, deployment, web, owner, key)


@pytest.fixture
def anonymous(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    return Caller(client, deployment, web, "anonymous", None)


async def eventually(condition: object, what: str) -> None:
    """Wait in a thread, so that the connections of the test stay alive."""
    await asyncio.to_thread(wait_until, condition, what)  # type: ignore[arg-type]
