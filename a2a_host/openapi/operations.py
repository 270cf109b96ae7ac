"""One operation of the HTTP+JSON binding for drf-spectacular: all of it follows from the view and its structs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from a2a_host.bindings.methods import LIST_TASKS, METHODS, Operation
from a2a_host.bindings.rest.framework import AsyncAPIView
from a2a_host.openapi.errors import JSON_TYPES, error_references
from a2a_host.openapi.examples import EXAMPLES
from a2a_host.openapi.security import SECURITY
from a2a_host.openapi.structs import Schema, reference
from a2a_host.openapi.wordings import WORDINGS
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
_component: Any = ResolvedComponent  # it has no types
_ACTIVATED: Schema = {
    "A2A-Extensions": {
        "description": "URIs of the extensions that are active, with commas between them (§3.2.6).",
        "schema": {"type": "string"},
    }
}
_EVENTS = "Server-sent events, each as `schema` has it; the data of each is JSON. See docs/events.md."


def operation_of(handler: Any) -> Operation:
    """The operation that a handler of a view names in the first word of its docstring."""
    return method_of(handler)[1]


def method_of(handler: Any) -> tuple[str, Operation]:
    """The same with the name: that of a JSON-RPC method, which also says the version."""
    name = re.split(r"[^\w/]", handler.__doc__ or "", maxsplit=1)[0]
    return name, LIST_TASKS if name == "tasks/list" else METHODS[name].operation


class OperationSchema(AutoSchema):
    """What the document says of one method of one path."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> Schema | None:
        """The Operation Object; the structs that it refers to go into the registry."""
        assert isinstance(self.view, AsyncAPIView)
        handler = getattr(self.view, method.lower())
        return _Described(*method_of(handler), self.view, path, method, registry).document()


class _Described:
    def __init__(
        self, name: str, operation: Operation, view: AsyncAPIView, path: str, method: str, registry: ComponentRegistry
    ) -> None:
        self.name = name
        self.operation = operation
        self.version = getattr(view, "dialect", V1_0).version
        self.wording = WORDINGS[self.version]
        self.in_path = [name for name in re.findall(r"{(\w+)}", path) if name != "slug"]
        self.has_body = method == "POST"
        self.method = method
        self.several = len([verb for verb in view.verbs() if operation_of(getattr(view, verb.lower())) is operation])
        schemas = self.wording.components(operation)
        for component, schema in schemas.items():
            registry.register_on_missing(_component(component, ResolvedComponent.SCHEMA, schema, object=component))
        self.forms = [
            (prefix, kind, schemas[prefix + kind.__name__]) for prefix, kind in self.wording.requests(operation)
        ]
        self.request = self.forms[-1][2]

    def document(self) -> Schema:
        """The Operation Object."""
        document: Schema = {
            "operationId": self._id(),
            "summary": self.name,
            "description": self.request.get("description", ""),
            "tags": [f"A2A {self.version}"],
            "parameters": list(self._parameters()),
            "security": SECURITY,
            "responses": {"200": self._response(), **error_references(self.has_body, self.wording.suffix)},
        }
        if self.has_body:
            document["requestBody"] = self._body()
        return document

    def _id(self) -> str:
        """The name of the operation; where two methods of a path do the same, that of GET says so."""
        by = "ByGet" if self.several > 1 and self.method == "GET" else ""
        return self.operation.name + by + self.wording.suffix

    def _parameters(self) -> Iterator[Schema]:
        yield SLUG
        properties: Schema = self.request.get("properties", {})
        for name in self.in_path:
            schema = properties.get(name, properties.get("taskId"))  # 0.3 has two names for the id of a task
            yield {"name": name, "in": "path", "required": True, "schema": schema}
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
        """The request in each of its forms, without what the path says of it."""
        bodies = [self._form(prefix, kind, schema) for prefix, kind, schema in self.forms]
        different = [body for index, body in enumerate(bodies) if body not in bodies[:index]]
        media: Schema = {"schema": different[0] if len(different) == 1 else {"anyOf": different}}
        examples = EXAMPLES.get(self.version, {})
        if self.operation.name in examples:
            media["example"] = examples[self.operation.name]
        required = any(schema.get("required") for schema in different if "$ref" not in schema) or not self.in_path
        return {"required": required, "content": dict.fromkeys(JSON_TYPES, media)}

    def _form(self, prefix: str, kind: type[Wire], schema: Schema) -> Schema:
        if not self.in_path:
            return reference(kind, prefix)
        said = {*self.in_path, *(("taskId",) if self.version == "0.3" else ())}
        kept = {name: one for name, one in schema["properties"].items() if name not in said}
        left = {"type": "object", "properties": kept}
        required = [name for name in schema.get("required", []) if name not in said]
        return left | ({"required": required} if required else {}) | {n: schema[n] for n in ("oneOf",) if n in schema}

    def _response(self) -> Schema:
        schema = self.wording.response(self.operation)
        if self.operation.stream is not None:
            content = {"text/event-stream": {"schema": _event(schema)}}
            return {"description": _EVENTS, "headers": _ACTIVATED, "content": content}
        return {
            "headers": _ACTIVATED,
            "description": self.operation.response.__name__,
            "content": {t: {"schema": schema} for t in (JSON_TYPES if self.version == "1.0" else JSON_TYPES[1:])},
        }


def _event(data: Schema) -> Schema:
    """One event of a stream whose data is the JSON of a schema."""
    properties = {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
    }
    return {"type": "object", "properties": properties, "required": list(properties)}
