"""A host with the agents of the README."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, GrpcServer, Web
from tests.support.peers import PEERS

README = Path(__file__).with_name("README.md")
COMMAND = ".venv/bin/python manage.py "


def commands_of_readme() -> list[list[str]]:
    """The management commands that register the agents, as the README has them."""
    section = README.read_text().partition("## Register")[2].partition("\n## ")[0]
    lines = section.replace("\\\n", " ").splitlines()
    return [shlex.split(line.strip().removeprefix(COMMAND)) for line in lines if line.strip().startswith(COMMAND)]


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.run(*commands_of_readme())
        yield deployment


@pytest.fixture(scope="package")
def web(deployment: Deployment) -> Web:
    return deployment.start_web(TCK_STREAMING_TIMEOUT="0.1")


@pytest.fixture(scope="package")
def grpc_server(deployment: Deployment, web: Web) -> GrpcServer:
    """The gRPC process."""
    return deployment.start_grpc(TCK_STREAMING_TIMEOUT="0.1")


@pytest.fixture(scope="package")
def client() -> Iterator[httpx.Client]:
    with make_client() as client:
        yield client


@pytest.fixture
def caller(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    """Without a key, as the kits call."""
    return Caller(client, deployment, web, "anonymous", None)


@pytest.fixture(params=[*PEERS, "grpc"])
def binding(request: pytest.FixtureRequest) -> str:
    """Each binding in turn."""
    name: str = request.param
    if name == "grpc":
        request.getfixturevalue("grpc_server")
    return name
