"""One operation of the HTTP+JSON binding for drf-spectacular: all of it follows from the view and its structs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from a2a_host.bindings.methods import OPERATIONS, Operation
from a2a_host.bindings.rest.framework import AsyncAPIView
from a2a_host.openapi.errors import JSON_TYPES, error_references
from a2a_host.openapi.examples import EXAMPLES
from a2a_host.openapi.security import SECURITY
from a2a_host.openapi.structs import Schema, reference, struct_schemas
from protocol.dialects.v1 import V1_0
from protocol.model import Wire

SLUG: Schema = {
    "name": "slug",
    "in": "path",
    "required": True,
    "description": "The agent.",
    "schema": {"type": "string", "minLength": 1},
    "example": "echo",
}
_BY_NAME = {operation.name: operation for operation in OPERATIONS}
_component: Any = ResolvedComponent  # it has no types
_EVENTS = "Server-sent events; the data of each is the JSON of `x-itemSchema`. See docs/events.md."


def operation_of(handler: Any) -> Operation:
    """The operation that a handler of a view names in the first word of its docstring."""
    return _BY_NAME[re.split(r"\W", handler.__doc__ or "", maxsplit=1)[0]]


class OperationSchema(AutoSchema):
    """What the document says of one method of one path."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> Schema | None:
        """The Operation Object; the structs that it refers to go into the registry."""
        assert isinstance(self.view, AsyncAPIView)
        handler = getattr(self.view, method.lower())
        return _Described(operation_of(handler), self.view, path, method, registry).document()


class _Described:
    def __init__(
        self, operation: Operation, view: AsyncAPIView, path: str, method: str, registry: ComponentRegistry
    ) -> None:
        self.operation = operation
        self.version = getattr(view, "dialect", V1_0).version
        self.in_path = [name for name in re.findall(r"{(\w+)}", path) if name != "slug"]
        self.has_body = method == "POST"
        self.method = method
        self.several = len([verb for verb in view.verbs() if operation_of(getattr(view, verb.lower())) is operation])
        self.registry = registry
        self.request = self._register(operation.request)

    def document(self) -> Schema:
        """The Operation Object."""
        document: Schema = {
            "operationId": self._id(),
            "summary": self.operation.name,
            "description": self.request.get("description", ""),
            "tags": [f"A2A {self.version}"],
            "parameters": list(self._parameters()),
            "security": SECURITY,
            "responses": {"200": self._response(), **error_references(self.has_body)},
        }
        if self.has_body:
            document["requestBody"] = self._body()
        return document

    def _id(self) -> str:
        """The name of the operation; where two methods of a path do the same, that of GET says so."""
        return self.operation.name + ("ByGet" if self.several > 1 and self.method == "GET" else "")

    def _register(self, kind: type[Wire]) -> Schema:
        """The schema of a struct, which is a component from now on, with all that it holds."""
        schemas = struct_schemas([kind])
        for name, schema in schemas.items():
            component = _component(name, ResolvedComponent.SCHEMA, schema, object=name)
            self.registry.register_on_missing(component)
        return schemas.get(kind.__name__, {})

    def _parameters(self) -> Iterator[Schema]:
        yield SLUG
        properties: Schema = self.request.get("properties", {})
        for name in self.in_path:
            yield {"name": name, "in": "path", "required": True, "schema": properties[name]}
        yield {
            "name": "A2A-Version",
            "in": "header",
            "description": "The version of the protocol (§3.6). Without it, that of the path.",
            "schema": {"enum": [self.version]},
        }
        yield {
            "name": "A2A-Extensions",
            "in": "header",
            "description": "URIs of the extensions that the caller wants to use, with commas between them (§3.2.6).",
            "schema": {"type": "string"},
        }
        if self.operation.stream is not None:
            yield {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "The `id` of the last event that the caller has seen; the next ones follow.",
                "schema": {"type": "string"},
            }
        if not self.has_body:
            required = self.request.get("required", [])
            for name, schema in properties.items():
                if name not in self.in_path:
                    yield {"name": name, "in": "query", "required": name in required, "schema": schema}

    def _body(self) -> Schema:
        """The request without what the path says of it."""
        schema = reference(self.operation.request)
        required = [name for name in self.request.get("required", []) if name not in self.in_path]
        if self.in_path:
            kept = {n: one for n, one in self.request["properties"].items() if n not in self.in_path}
            schema = {"type": "object", "properties": kept, "required": required}
        media: Schema = {"schema": schema}
        if self.operation.name in EXAMPLES:
            media["example"] = EXAMPLES[self.operation.name]
        return {"required": bool(required), "content": dict.fromkeys(JSON_TYPES, media)}

    def _response(self) -> Schema:
        kind = self.operation.response
        self._register(kind)
        schema: Schema = {"type": "object", "maxProperties": 0} if kind is Wire else reference(kind)
        if self.operation.stream is not None:
            event = {"schema": {"type": "string"}, "x-itemSchema": schema}
            return {"description": _EVENTS, "content": {"text/event-stream": event}}
        return {
            "description": "Nothing" if kind is Wire else kind.__name__,
            "content": {t: {"schema": schema} for t in JSON_TYPES},
        }
