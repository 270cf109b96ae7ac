"""Schemathesis makes requests from the OpenAPI document, fitting and unfitting ones, and holds replies against it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from a2a_host.openapi.document import document as make_document
from tests.api.conftest import KEY
from tests.support.deployment import Web

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
AGENTS = ["echo", "direct", "data", "nobody"]
EXAMPLES = {GenerationMode.POSITIVE: 20, GenerationMode.NEGATIVE: 10}


def _cases() -> Iterator[tuple[str, str, GenerationMode]]:
    """(method, path, mode) of every operation; nothing can be wrong with one that only takes headers."""
    for path, item in make_document()["paths"].items():
        for verb, operation in item.items():
            yield verb, path, GenerationMode.POSITIVE
            if any(parameter["in"] != "header" for parameter in operation.get("parameters", [])):
                yield verb, path, GenerationMode.NEGATIVE


@pytest.fixture(scope="package")
def schema(document: dict[str, Any]) -> Any:
    """The document, with agents that there are."""
    narrowed = copy.deepcopy(document)
    for item in narrowed["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "slug":
                    parameter["schema"] = {"enum": AGENTS}
    return schemathesis.openapi.from_dict(narrowed)


@pytest.mark.parametrize(("verb", "path", "mode"), list(_cases()), ids=str)
def test_replies_are_as_the_document_says(schema: Any, web: Web, verb: str, path: str, mode: GenerationMode) -> None:
    operation = schema[path][verb.upper()]

    @settings(
        max_examples=EXAMPLES[mode],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(mode))
    def try_one(case: Any) -> None:
        case.call_and_validate(base_url=web.url, headers={"X-API-Key": KEY}, checks=CHECKS, timeout=30)

    try_one()


def test_what_needs_a_key_is_refused_without(client: httpx.Client, web: Web, document: dict[str, Any]) -> None:
    """By an agent that is not open, whatever the operation."""
    refused = 0
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            url = web.url + path.replace("{slug}", "order-agent").replace("{id}", "x").replace("{taskId}", "y")
            response = client.request(verb.upper(), url, headers={"X-API-Key": "a2a_wrong"})
            if operation["security"]:
                assert response.status_code == 401, (verb, path)
                assert response.headers["www-authenticate"].startswith("Bearer")
                refused += 1
            else:
                assert response.status_code == 200, (verb, path)
    assert refused >= 12
