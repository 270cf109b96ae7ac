"""One host for the documents that clients were written from, with the agents that they speak of.

Each test file has one document. Its exchanges are sent byte for byte; only host, ids and keys differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from a2a_host.services.processes import Process
from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.receiver import Receiver

CALLERS = 200
PDF = ("--input-mode", "application/pdf", "--input-mode", "text/plain")
AGENTS = [
    ("compliance", "--executor", "tests.seeds.executors.Compliance", *PDF),
    ("order-agent", "--root"),
    ("translation", "--executor", "tests.seeds.executors.Translation"),
    (
        *("weather", "--executor", "tests.seeds.executors.Weather", "--open", "--name", "天气预报智能体"),
        *("--input-mode", "text/plain", "--output-mode", "application/json"),
    ),
    ("quiet", "--simulator", "steps", "--no-streaming", "--open"),
]

_numbers = iter(range(CALLERS))


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of the catalogue of cases."""
    config.addinivalue_line("markers", "case(id): the black-box case that the test stands for (see tests/cases)")


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({key_of(number): owner_of(number) for number in range(CALLERS)})
        yield deployment


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    """A webhook receiver at an address that the host may call."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="package")
def worker(deployment: Deployment, web: Web, receiver: Receiver) -> Process:
    """The Celery worker, which delivers to webhooks."""
    return deployment.start_worker(OUTBOUND_ALLOW=f"127.0.0.1:{receiver.port}")


@pytest.fixture(scope="package")
def web(deployment: Deployment, receiver: Receiver) -> Web:
    """The web process that callers are in front of."""
    deployment.run(*(("agent", "register", *agent) for agent in AGENTS))
    web = deployment.start_web(KEEP_ALIVE_SECONDS="0.5", OUTBOUND_ALLOW=f"127.0.0.1:{receiver.port}")
    card = f"{web.agent_url(AGENTS[-1][0])}/.well-known/agent-card.json"
    wait_until(lambda: httpx.get(card, trust_env=False).status_code == 200, "the agents")
    return web


@pytest.fixture(scope="package")
def client() -> Iterator[httpx.Client]:
    with make_client() as client:
        yield client


@pytest.fixture
def alice(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    return _caller(client, deployment, web)


@pytest.fixture
def bob(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    """Has no rights in common with alice."""
    return _caller(client, deployment, web)


def _caller(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    number = next(_numbers)
    return Caller(client, deployment, web, owner_of(number), key_of(number))


def owner_of(number: int) -> str:
    """The principal behind the key with this number."""
    return f"reader-{number:04}"


def key_of(number: int) -> str:
    """A key that has been stored."""
    return f"a2a_key-of-the-reader-number-{number:04}"
