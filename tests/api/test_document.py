"""The OpenAPI document says what the host does, and only that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import yaml
from openapi_spec_validator import validate

from a2a_host.bindings.methods import OPERATIONS
from a2a_host.bindings.rest import framework, routes, views
from a2a_host.bindings.rest.v03 import routes as routes_v03
from a2a_host.bindings.rest.v03 import views as views_v03
from a2a_host.openapi.document import all_templates
from a2a_host.openapi.operations import operation_of
from a2a_host.openapi.wordings import WORDINGS
from protocol import card, model, requests
from protocol.ids import new_id
from protocol.model import Wire
from tests.support.callers import Caller
from tests.support.deployment import Web

Document = dict[str, Any]
PREFIX = "/agents/{slug}"


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    """(path, verb, operation) of the whole document."""
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            yield path, verb, operation


def structs() -> list[type[Wire]]:
    """Every struct of the protocol that goes over the wire."""
    found = [kind for module in (model, requests, card) for kind in vars(module).values() if isinstance(kind, type)]
    return [kind for kind in found if issubclass(kind, Wire) and kind is not Wire]


def test_it_is_a_valid_document(document: Document) -> None:
    assert document["openapi"] == "3.1.0"
    validate(document)


def test_it_comes_as_yaml_and_as_json(client: httpx.Client, web: Web, document: Document) -> None:
    url = f"{web.url}/api/schema/"
    assert yaml.safe_load(client.get(url).content) == document
    for accept in ("application/vnd.oai.openapi+json", "application/json"):
        response = client.get(url, headers={"accept": accept})
        assert (response.headers["content-type"].partition(";")[0], response.json()) == (accept, document)


def test_every_route_is_in_it_with_its_methods(document: Document) -> None:
    for template, view in all_templates().items():
        verbs = {verb.lower() for verb in view.cls().verbs()} - {"head"}
        assert set(document["paths"][PREFIX + template]) == verbs, template


@pytest.mark.parametrize(("module", "base"), [(views, views.OperationView), (views_v03, views_v03.V03View)])
def test_every_view_has_a_route(module: Any, base: type) -> None:
    """Together with the test above: no view is left out of the document."""
    routed = {view.cls for view in all_templates().values()}
    defined = {one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__}
    assert defined - routed == {base}
    assert all(issubclass(view, framework.AsyncAPIView) for view in routed)


def test_paths_reach_the_views_that_they_describe() -> None:
    for template, view in routes.ROUTES.templates().items():
        path = re.sub(r"{(\w+)}", "x", template).encode()
        assert routes.find_route(routes.split_path(path, base=0)).view is view, template
    for template, view in routes_v03.ROUTES.templates().items():
        path = re.sub(r"{(\w+)}", "x", template).encode()
        route = routes_v03.route_of_v03(_scope(path), base=0)
        assert route is not None, template
        assert route.view is view, template


def test_every_operation_is_in_it_by_its_name(document: Document) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert {operation.name for operation in OPERATIONS} <= set(ids)


def test_every_field_of_every_struct_is_in_it(document: Document) -> None:
    schemas = document["components"]["schemas"]
    for kind in structs():
        fields = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert set(schemas[kind.__name__]["properties"]) == fields, kind


def test_every_field_of_a_request_is_in_its_path_query_or_body(document: Document) -> None:
    for template, view in all_templates().items():
        for verb, operation in document["paths"][PREFIX + template].items():
            forms = WORDINGS[view.cls.version].requests(operation_of(getattr(view.cls, verb)))
            used = forms if verb == "post" else forms[-1:]
            fields = {field.encode_name for _, kind in used for field in msgspec.structs.fields(kind)}
            given = _given(document, operation)
            if "id" in given and view.cls.version == "0.3":
                fields -= {"taskId"}  # the id of the path, by another name
                given -= {"id"} - fields
            assert given == fields, (verb, template)


def _given(document: Document, operation: Document) -> set[str]:
    """Names of all that a request can say in path, query and body."""
    names = {p["name"] for p in operation["parameters"] if p["in"] != "header"} - {"slug"}
    for media in operation.get("requestBody", {}).get("content", {}).values():
        for schema in media["schema"].get("anyOf", [media["schema"]]):
            if "$ref" in schema:
                schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            names |= set(schema["properties"])
    return names


def test_examples_are_accepted(document: Document, caller: Caller) -> None:
    """Each message by an agent that answers at once, all else on a task that is still at work."""
    sent = []
    for path, verb, operation in operations(document):
        example = next(iter(operation.get("requestBody", {}).get("content", {}).values()), {}).get("example")
        if example is None or "pushNotificationConfigs" in path:
            continue
        if "message" in example:
            url = caller.web.agent_url("echo") + path.removeprefix(PREFIX)
            example = {"message": example["message"] | {"messageId": new_id()}}
        else:
            task = caller.jsonrpc("hold").start("hold 60")
            url = caller.web.agent_url("hold") + path.removeprefix(PREFIX).replace("{id}", task["id"])
        headers = caller.headers | {"a2a-version": operation["tags"][0].removeprefix("A2A ")}
        with caller.client.stream(verb.upper(), url, json=example, headers=headers) as response:
            assert response.status_code == 200, response.read()
        sent.append(operation["operationId"])
    names = ["CancelTask", "SendMessage", "SendStreamingMessage", "SubscribeToTask"]
    assert sorted(sent) == sorted([*names, *(f"{name}V03" for name in names)])


@pytest.mark.parametrize("path", ["/api/docs/", "/api/docs/?script="])
def test_the_page_loads_nothing_from_elsewhere(client: httpx.Client, web: Web, path: str) -> None:
    response = client.get(web.url + path)
    assert response.status_code == 200
    assert re.findall(r"https?://[^\"' ]+", response.text) == []
    for asset in re.findall(r'(?:src|href)="(/static/[^"]+)"', response.text):
        assert client.get(web.url + asset).status_code == 200, asset


def _scope(path: bytes) -> dict[str, Any]:
    """Of a GET without anything."""
    return {
        "raw_path": path,
        "path": path.decode(),
        "headers": [],
        "query_string": b"",
        "scheme": "http",
        "client": None,
    }
