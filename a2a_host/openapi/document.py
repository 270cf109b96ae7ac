"""The whole document: the routes of agents as URL patterns for drf-spectacular, and what is no view."""

from __future__ import annotations

import functools
import re
from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.generators import SchemaGenerator

from a2a_host.bindings.rest import routes
from a2a_host.bindings.rest.v03 import routes as routes_v03
from a2a_host.openapi.errors import error_references, error_responses, error_schemas
from a2a_host.openapi.operations import SLUG
from a2a_host.openapi.security import SCHEMES
from a2a_host.openapi.structs import Schema, reference, struct_schemas
from protocol.card import AgentCard

PREFIX = "agents/{slug}"


class DocumentGenerator(SchemaGenerator):
    """Makes the document once a process: nothing of it changes."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        """The document."""
        return document()


@functools.cache
def document() -> dict[str, Any]:
    """The OpenAPI document of this host, as JSON values. Callers must not change it."""
    generator: Any = SchemaGenerator  # it has no types
    made: dict[str, Any] = generator(patterns=_patterns()).get_schema(public=True)
    return made


def all_templates() -> dict[str, Any]:
    """The view of every path below an agent's URL, by its template."""
    return routes.ROUTES.templates() | routes_v03.ROUTES.templates()


def _patterns() -> list[URLPattern]:
    return [path(_django_path(f"{PREFIX}{template}"), view) for template, view in all_templates().items()]


def _django_path(template: str) -> str:
    return re.sub(r"{(\w+)}", r"<str:\1>", template)


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add what no view says: shared components, and the paths that are answered without Django REST framework."""
    components = result["components"]
    components["schemas"] = dict(
        sorted((components["schemas"] | struct_schemas([AgentCard]) | error_schemas()).items())
    )
    components["responses"] = error_responses()
    components["securitySchemes"] = SCHEMES
    result["paths"] |= _PLAIN_PATHS
    return result


def _json(schema: Schema, description: str) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_HEALTH: Schema = {"type": "object", "properties": {"status": {"enum": ["ok", "unavailable"]}}, "required": ["status"]}
_KEYS: Schema = {
    "type": "object",
    "properties": {"keys": {"type": "array", "items": {"type": "object", "required": ["kty", "kid", "alg", "use"]}}},
    "required": ["keys"],
}
_PLAIN_PATHS: dict[str, Schema] = {
    f"/{PREFIX}/.well-known/agent-card.json": {
        "get": {
            "operationId": "GetAgentCard",
            "summary": "The agent card",
            "description": "What an agent says of itself (§8.2); answers If-None-Match and If-Modified-Since.",
            "tags": ["Discovery"],
            "parameters": [
                SLUG,
                *(
                    {"name": name, "in": "header", "schema": {"type": "string"}}
                    for name in ("If-None-Match", "If-Modified-Since")
                ),
            ],
            "security": [],
            "responses": {
                "200": _json(reference(AgentCard), "AgentCard"),
                "304": {"description": "The card is the one that the caller has."},
                **{s: r for s, r in error_references(has_body=False).items() if s in ("404", "500")},
            },
        }
    },
    "/.well-known/jwks.json": {
        "get": {
            "operationId": "GetSigningKeys",
            "summary": "The keys that sign agent cards",
            "description": "A JWK Set (RFC 7517) for the signatures of cards (§8.4.3); answers If-None-Match.",
            "tags": ["Discovery"],
            "parameters": [{"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}],
            "security": [],
            "responses": {
                "200": _json(_KEYS, "The keys."),
                "304": {"description": "The keys are those that the caller has."},
                "500": {"$ref": "#/components/responses/Error500"},
            },
        }
    },
    "/healthz": {
        "get": {
            "operationId": "GetHealth",
            "summary": "Whether this process serves",
            "tags": ["Host"],
            "security": [],
            "responses": {"200": _json(_HEALTH, "It serves."), "503": _json(_HEALTH, "It has no database, or ends.")},
        }
    },
}
