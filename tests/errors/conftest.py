"""A host with an agent for each thing that an agent may not do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.errors.columns import Ask, Column, Host
from tests.support.callers import make_client
from tests.support.deployment import Deployment, wait_until

KEY = "a2a_key-of-the-caller-who-gets-all-errors"
EXTENSION = "urn:a2a:tests:required"
AGENTS = [
    ("deaf", "--simulator", "echo", "--no-push", "--open"),
    ("quiet", "--simulator", "steps", "--no-streaming", "--open"),
    ("small", "--simulator", "echo", "--max-request-bytes", "1024", "--open"),
    ("plain", "--simulator", "echo", "--input-mode", "text/plain", "--open"),
    ("bare", "--simulator", "echo", "--extended-card", "--open"),
    ("strict", "--simulator", "echo", "--required-extension", EXTENSION, "--open"),
    ("closed", "--simulator", "echo"),
]
_numbers = itertools.count()


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({KEY: "unlucky"})
        yield deployment


@pytest.fixture(scope="package")
def host(deployment: Deployment) -> Iterator[Host]:
    with ThreadPoolExecutor(1) as pool, make_client() as client:
        registered = pool.submit(deployment.run, *(("agent", "register", *agent) for agent in AGENTS))
        web = deployment.start_web()
        registered.result()
        card = f"{web.agent_url(AGENTS[-1][0])}/.well-known/agent-card.json"
        wait_until(lambda: httpx.get(card, trust_env=False).status_code == 200, "the agents")
        yield Host(client, web, deployment.start_grpc(), KEY)


@pytest.fixture(scope="package")
def finished(host: Host) -> str:
    """The id of a task of `echo` that has ended."""
    reply = Column.named("jsonrpc-1.0").reply(host, Ask("SendMessage", parts=[{"text": "hi"}]))
    task: str = reply["result"]["task"]["id"]
    return task
