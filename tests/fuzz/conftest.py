"""A host of the fuzzer's own: whatever is in its database, the fuzzer has put there.

`make test` runs the same inputs every time; with FUZZ_FACTOR in the environment there are that many times as many, and
others each time (`make fuzz`, which prints the seed).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.deployment import Deployment, GrpcServer, Web

T = TypeVar("T")

KEY = "a2a_key-of-the-fuzzer-that-all-calls-have"
FACTOR = float(os.environ.get("FUZZ_FACTOR", "0"))


TOGETHER = 10
"""Inputs of one example: Hypothesis spends more time on an example than on all that is drawn for it."""


def inputs(count: int, strategy: st.SearchStrategy[T]) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Decorates a test of one input, which becomes one of so many inputs."""
    examples = settings(
        max_examples=int(count * (FACTOR or 1)) // TOGETHER,
        derandomize=not FACTOR,
        database=None,
        deadline=None,
        print_blob=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

    def decorate(try_one: Callable[[T], None]) -> Callable[[], None]:
        @examples
        @given(st.lists(strategy, min_size=TOGETHER, max_size=TOGETHER))
        def try_all(drawn: list[T]) -> None:
            for each in drawn:
                try_one(each)

        return try_all

    return decorate


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({KEY: "fuzzer"})
        yield deployment


@pytest.fixture(scope="package")
def web(deployment: Deployment) -> Web:
    return deployment.start_web()


@pytest.fixture(scope="package")
def grpc_server(deployment: Deployment) -> GrpcServer:
    return deployment.start_grpc()
