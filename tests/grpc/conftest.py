"""A host whose gRPC processes the tests may end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.deployment import Deployment, GrpcServer, Web


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        yield deployment


@pytest.fixture(scope="package")
def web(deployment: Deployment) -> Web:
    return deployment.start_web()


@pytest.fixture(scope="package")
def server(deployment: Deployment) -> GrpcServer:
    """The gRPC process that stays."""
    return deployment.start_grpc(KEEP_ALIVE_SECONDS="0.5")
