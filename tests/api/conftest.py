"""A host with the agents that are there from the start, and its OpenAPI document as callers get it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, Web

KEY = "a2a_key-of-the-reader-of-the-document"


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.add_keys({KEY: "reader"})
        yield deployment


@pytest.fixture(scope="package")
def web(deployment: Deployment) -> Web:
    return deployment.start_web(KEEP_ALIVE_SECONDS="0.5")


@pytest.fixture(scope="package")
def client() -> Iterator[httpx.Client]:
    with make_client() as client:
        yield client


@pytest.fixture(scope="package")
def document(client: httpx.Client, web: Web) -> dict[str, Any]:
    """The OpenAPI document."""
    response = client.get(f"{web.url}/api/schema/?format=json")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    document: dict[str, Any] = response.json()
    return document


@pytest.fixture
def caller(client: httpx.Client, deployment: Deployment, web: Web) -> Caller:
    return Caller(client, deployment, web, "reader", KEY)
