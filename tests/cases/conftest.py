"""One host for all cases: a web process with a short keep-alive, on a database of its own; a worker where one is used.

Every test has callers that nobody else has, so what it finds is its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import httpx
import pytest

from a2a_host.services.processes import Process
from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, Web
from tests.support.peers import PEERS

KEEP_ALIVE = "1"
"""Seconds, so that an idle stream shows its keep-alive soon."""
CALLERS = 2000

_numbers = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of this package."""
    config.addinivalue_line("markers", "case(id): the black-box case that the test stands for (see README.md)")


@pytest.fixture(scope="session")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({key_of(number): owner_of(number) for number in range(CALLERS)})
        executors = "tests.cases.executors."
        deployment.run(
            ("agent", "register", "quiet", "--simulator", "steps", "--no-streaming", "--open"),
            ("agent", "register", "small", "--simulator", "data", "--max-request-bytes", "2048", "--open"),
            ("agent", "register", "forgetful", "--simulator", "echo", "--no-idempotent", "--open"),
            ("agent", "register", "private", "--simulator", "echo", "--open", "--no-shared-history"),
            ("agent", "register", "hidden", "--simulator", "echo", "--open", "--no-enabled"),
            ("agent", "register", "worker-echo", "--simulator", "echo", "--execution", "worker", "--open"),
            *(
                ("agent", "register", name.lower(), "--executor", executors + name, "--open")
                for name in ("Replacing", "Reopening", "Empty", "Silent", "Described", "Chatty", "Traced")
            ),
        )
        yield deployment


@pytest.fixture(scope="session")
def web(deployment: Deployment) -> Web:
    return deployment.start_web(KEEP_ALIVE_SECONDS=KEEP_ALIVE)


@pytest.fixture(scope="session")
def second_web(deployment: Deployment) -> Web:
    return deployment.start_web(KEEP_ALIVE_SECONDS=KEEP_ALIVE)


@pytest.fixture(scope="session")
def worker(deployment: Deployment) -> Process:
    """The Celery worker, for tests of agents that run in one."""
    return deployment.start_worker()


@pytest.fixture(params=list(PEERS))
def binding(request: pytest.FixtureRequest) -> str:
    """Each binding in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
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


@pytest.fixture
def anonymous(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    """Has no key. Shares the history of open agents with all tests."""
    return Caller(client, deployment, web, "anonymous", None)


def _caller(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    number = next(_numbers)
    return Caller(client, deployment, web, owner_of(number), key_of(number))


def owner_of(number: int) -> str:
    """The principal behind the key with this number."""
    return f"user-{number:04}"


def key_of(number: int) -> str:
    """A key that has been stored."""
    return f"a2a_key-of-the-user-number-{number:04}"
