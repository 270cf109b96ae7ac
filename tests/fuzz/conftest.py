"""A host of the fuzzer's own: whatever is in its database, the fuzzer has put there.

`make test` runs the same inputs every time; with FUZZ_FACTOR in the environment there are that many times as many, and
others each time (`make fuzz`, which prints the seed).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.support.deployment import Deployment, GrpcServer, Web

KEY = "a2a_key-of-the-fuzzer-that-all-calls-have"
FACTOR = float(os.environ.get("FUZZ_FACTOR", "0"))


def inputs(count: int) -> settings:
    """Settings of a test that tries so many inputs."""
    return settings(
        max_examples=int(count * FACTOR) if FACTOR else count,
        derandomize=not FACTOR,
        database=None,
        deadline=None,
        print_blob=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="session")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({KEY: "fuzzer"})
        yield deployment


@pytest.fixture(scope="session")
def web(deployment: Deployment) -> Web:
    return deployment.start_web()


@pytest.fixture(scope="session")
def grpc_server(deployment: Deployment) -> GrpcServer:
    return deployment.start_grpc()
