"""Settings of drf-spectacular, and of Django REST framework where they belong together."""

from __future__ import annotations

from typing import Any

_DESCRIPTION = """\
The HTTP+JSON binding of the [A2A protocol](https://a2a-protocol.org) as the agents of this host serve it, and what
the host says of itself. JSON-RPC is posted to `/agents/{slug}`.

Each path of an agent also works with a tenant, which is the agent's slug: `/agents/{slug}/{tenant}/…`, and for all
agents at one endpoint, `/a2a/{tenant}/…`. Section numbers (§) are those of the A2A specification 1.0.
Paths below `/v1` are those of version 0.3, in which a request may have either of two forms.
"""

REST_FRAMEWORK: dict[str, Any] = {"DEFAULT_SCHEMA_CLASS": "a2a_host.openapi.operations.OperationSchema"}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "a2a-host",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": "1.0",
    "OAS_VERSION": "3.1.0",
    "LICENSE": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
    "SERVERS": [{"url": "/", "description": "This host"}],
    "DEFAULT_GENERATOR_CLASS": "a2a_host.openapi.document.DocumentGenerator",
    "POSTPROCESSING_HOOKS": ["a2a_host.openapi.document.complete"],
    "SORT_OPERATIONS": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "defaultModelsExpandDepth": 0, "displayRequestDuration": True},
}
