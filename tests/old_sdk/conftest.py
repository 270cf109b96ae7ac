"""One live host for the SDK of 0.3, and for the current one that is told to speak 0.3."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.old_sdk.peer import OldSdk
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.receiver import Receiver

SIMULATORS = ("echo", "steps", "hold", "ask", "data", "direct")
"""Each is also registered as `old-…`, in 0.3 alone."""
CALLERS = 50

_numbers = iter(range(CALLERS))


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({key_of(number): f"old-user-{number:02}" for number in range(CALLERS)})
        yield deployment


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    """A webhook receiver at an address that the host may call."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="package")
def web(deployment: Deployment, receiver: Receiver) -> Web:
    commands = [
        ("agent", "register", f"old-{name}", "--simulator", name, "--versions", "0.3", "--open") for name in SIMULATORS
    ]
    with ThreadPoolExecutor(1) as pool:
        registered = pool.submit(deployment.run, *commands)
        web = deployment.start_web(OUTBOUND_ALLOW=f"127.0.0.1:{receiver.port}")
        registered.result()
    card = f"{web.agent_url(f'old-{SIMULATORS[-1]}')}/.well-known/agent-card.json"
    wait_until(lambda: httpx.get(card, trust_env=False).status_code == 200, "the agents")
    return web


@pytest.fixture
def key() -> str:
    """The key of a caller whom no other test knows."""
    return key_of(next(_numbers))


@pytest.fixture(scope="package")
def old_sdks(web: Web) -> Iterator[dict[str, OldSdk]]:
    """A caller for each transport; the old SDK takes its time to start."""
    with OldSdk(web.url, "JSONRPC", key_of(next(_numbers))) as rpc, OldSdk(web.url, "HTTP+JSON", rpc.key) as rest:
        yield {"JSONRPC": rpc, "HTTP+JSON": rest}


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
def transport(request: pytest.FixtureRequest) -> str:
    """Each transport of the clients in turn."""
    name: str = request.param
    return name


@pytest.fixture
def alice(old_sdks: dict[str, OldSdk], transport: str) -> OldSdk:
    return old_sdks[transport]


def key_of(number: int) -> str:
    """A key that has been stored."""
    return f"a2a_key-of-the-old-user-number-{number:03}"
