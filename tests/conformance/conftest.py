"""A host with the agents of the README."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, Web
from tests.support.peers import PEERS

README = Path(__file__).with_name("README.md")
COMMAND = ".venv/bin/python manage.py "


def commands_of_readme() -> list[list[str]]:
    """The management commands that the README tells people to run."""
    lines = README.read_text().replace("\\\n", " ").splitlines()
    return [shlex.split(line.strip().removeprefix(COMMAND)) for line in lines if line.strip().startswith(COMMAND)]


@pytest.fixture(scope="session")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.run(*commands_of_readme())
        yield deployment


@pytest.fixture(scope="session")
def web(deployment: Deployment) -> Web:
    return deployment.start_web(TCK_STREAMING_TIMEOUT="0.1")


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    with make_client() as client:
        yield client


@pytest.fixture
def caller(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    """Without a key, as the kits call."""
    return Caller(client, deployment, web, "anonymous", None)


@pytest.fixture(params=list(PEERS))
def binding(request: pytest.FixtureRequest) -> str:
    """Each binding in turn."""
    name: str = request.param
    return name
