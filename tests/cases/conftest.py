"""One host for all cases: a web process with a short keep-alive, on a database of its own; a worker where one is used.

Every test has callers that nobody else has, so what it finds is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from a2a_host.services.processes import Process
from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, GrpcServer, Web, wait_until
from tests.support.peers import PEERS
from tests.support.receiver import Receiver

KEEP_ALIVE = "0.5"
"""Seconds, so that an idle stream shows its keep-alive soon."""
PUBLIC_URL = "https://agents.e.test"
"""Where the second web process is reached, says its environment."""
CALLERS = 4000
AGENTS = [
    ("quiet", "--simulator", "steps", "--no-streaming"),
    ("small", "--simulator", "data", "--max-request-bytes", "2048"),
    ("deaf", "--simulator", "echo", "--no-push"),
    ("forgetful", "--simulator", "echo", "--no-idempotent"),
    ("private", "--simulator", "echo", "--no-shared-history"),
    ("hidden", "--simulator", "echo", "--no-enabled"),
    ("worker-echo", "--simulator", "echo", "--execution", "worker"),
    ("brief", "--simulator", "echo", "--keep-completed", "1"),
    ("only-1-0", "--simulator", "echo", "--versions", "1.0"),
    ("only-0-3", "--simulator", "echo", "--versions", "0.3"),
    *(
        (name.lower(), "--executor", f"tests.cases.executors.{name}")
        for name in ("Replacing", "Reopening", "Empty", "Silent", "Described", "Chatty", "Traced")
    ),
]

_numbers = iter(range(CALLERS))


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of this package."""
    config.addinivalue_line("markers", "case(id): the black-box case that the test stands for (see README.md)")


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
def outbound(receiver: Receiver) -> dict[str, str]:
    """Environment of a process that may call the receiver, and nothing else of this machine."""
    return {"OUTBOUND_ALLOW": f"127.0.0.1:{receiver.port}"}


@pytest.fixture(scope="package")
def web(deployment: Deployment, outbound: dict[str, str]) -> Web:
    """The web process that callers are in front of. The agents are registered while it starts."""
    with ThreadPoolExecutor(1) as pool:
        registered = pool.submit(deployment.run, *(("agent", "register", *agent, "--open") for agent in AGENTS))
        web = deployment.start_web(KEEP_ALIVE_SECONDS=KEEP_ALIVE, **outbound)
        registered.result()
    card = f"{web.agent_url(AGENTS[-1][0])}/.well-known/agent-card.json"
    wait_until(lambda: httpx.get(card, trust_env=False).status_code == 200, "the agents")
    return web


@pytest.fixture(scope="package")
def second_web(deployment: Deployment) -> Web:
    """Another web process on the same database."""
    return deployment.start_web(KEEP_ALIVE_SECONDS=KEEP_ALIVE, PUBLIC_URL=f"{PUBLIC_URL}/")


@pytest.fixture(scope="package")
def lonely_web(deployment: Deployment) -> Web:
    """One that finds no broker and trusts no proxy."""
    return deployment.start_web(BROKER_URL="redis://127.0.0.1:1/0", TRUSTED_PROXIES="10.0.0.0/8")


@pytest.fixture(scope="package")
def of_workers(outbound: dict[str, str]) -> dict[str, str]:
    """Environment of the worker, and of one that takes its place."""
    return outbound | {"RETENTION_SECONDS": "1"}


@pytest.fixture(scope="package")
def worker(deployment: Deployment, of_workers: dict[str, str]) -> Process:
    """The Celery worker, for tests of agents that run in one and of webhooks."""
    return deployment.start_worker(**of_workers)


@pytest.fixture(scope="package")
def grpc_server(deployment: Deployment, web: Web, outbound: dict[str, str]) -> GrpcServer:
    """The gRPC process. It knows the agents, as they are registered when the web process answers."""
    return deployment.start_grpc(KEEP_ALIVE_SECONDS=KEEP_ALIVE, **outbound)


@pytest.fixture(params=[*PEERS, "grpc"])
def binding(request: pytest.FixtureRequest) -> str:
    """Each binding in turn."""
    name: str = request.param
    if name == "grpc":
        request.getfixturevalue("grpc_server")
    return name


@pytest.fixture(params=list(PEERS))
def json_binding(request: pytest.FixtureRequest) -> str:
    """Each binding that is written in JSON, for what only JSON can say."""
    name: str = request.param
    return name


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
