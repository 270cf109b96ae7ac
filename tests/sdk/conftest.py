"""One live host for the official client: a web process and a Celery worker that find people's own executors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from a2a.utils.constants import TransportProtocol

from a2a_host.services.processes import Process
from tests.sdk.caller import SdkCaller
from tests.support.deployment import Deployment, Web, wait_until

AGENTS_DIR = str(Path(__file__).parent / "own")
EXECUTORS = ("Speller", "Messenger", "Interviewer", "Broken", "Waiter")
CALLERS = 200

_numbers = iter(range(CALLERS))


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({_key(number): _owner(number) for number in range(CALLERS)})
        yield deployment


@pytest.fixture(scope="package")
def web(deployment: Deployment) -> Web:
    """The web process, with every executor registered twice: to run there, and as `…-worker` in the worker."""
    commands = [
        ("agent", "register", f"{name.lower()}{suffix}", "--executor", f"sdk_agents.{name}", "--execution", execution)
        for name in EXECUTORS
        for execution, suffix in (("web", ""), ("worker", "-worker"))
    ]
    with ThreadPoolExecutor(1) as pool:
        registered = pool.submit(register, deployment, *commands)
        web = deployment.start_web(AGENTS_DIR=AGENTS_DIR)
        registered.result()
    card = f"{web.agent_url('waiter-worker')}/.well-known/agent-card.json"
    wait_until(lambda: httpx.get(card, trust_env=False).status_code == 200, "the agents")
    return web


@pytest.fixture(scope="package")
def worker(deployment: Deployment, web: Web) -> Process:
    """The Celery worker."""
    return deployment.start_worker(AGENTS_DIR=AGENTS_DIR)


@pytest.fixture(params=[TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value])
def binding(request: pytest.FixtureRequest) -> str:
    """Each transport of the client in turn."""
    name: str = request.param
    return name


@pytest.fixture(params=["", "-worker"], ids=["web", "worker"])
def place(request: pytest.FixtureRequest) -> str:
    """Where the agent's code runs, as the end of its slug."""
    suffix: str = request.param
    return suffix


@pytest.fixture
async def alice(web: Web, worker: Process, binding: str) -> AsyncIterator[SdkCaller]:
    """A caller whom no other test knows."""
    async with _caller(web, binding) as caller:
        yield caller


@pytest.fixture
async def bob(web: Web, worker: Process, binding: str) -> AsyncIterator[SdkCaller]:
    """Has no rights in common with alice."""
    async with _caller(web, binding) as caller:
        yield caller


def register(deployment: Deployment, *commands: tuple[str, ...]) -> list[str]:
    """Run management commands with the folder of people's executors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTS_DIR", AGENTS_DIR)
        return deployment.run(*commands)


def _caller(web: Web, binding: str) -> SdkCaller:
    number = next(_numbers)
    return SdkCaller(web, binding, _owner(number), _key(number))


def _owner(number: int) -> str:
    return f"sdk-user-{number:03}"


def _key(number: int) -> str:
    return f"a2a_key-of-the-sdk-user-number-{number:03}"
