"""The error replies of the HTTP+JSON binding (§11.6), from the table of the bindings' codes."""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.errors import CODES, DOMAIN
from a2a_host.bindings.http import A2A_JSON, JSON
from protocol.errors import MethodNotAllowedError, RequestTooLargeError, UnsupportedMediaTypeError, UpgradeRequiredError

Schema = dict[str, Any]

JSON_TYPES = (A2A_JSON.decode(), JSON.decode())
_NEEDS_BODY = {CODES[error].http for error in (RequestTooLargeError, UnsupportedMediaTypeError)}
_ELSEWHERE = (MethodNotAllowedError, UpgradeRequiredError)
"""The answers to methods and a path that the document does not have."""
_STRING: Schema = {"type": "string"}
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_HEADERS: dict[int, Schema] = {
    401: {"WWW-Authenticate": {"schema": _STRING, "description": "How to authenticate (§7.4)."}},
    503: {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}, "description": "Seconds."}},
}


def _reasons() -> dict[int, list[str]]:
    """Reasons by HTTP status."""
    found: dict[int, list[str]] = {}
    for error, codes in CODES.items():
        if error not in _ELSEWHERE:
            found.setdefault(codes.http, []).append(error.reason)
    return dict(sorted(found.items()))


def error_schemas() -> dict[str, Schema]:
    """The components that error replies consist of."""
    violation = _object({"field": _STRING, "description": _STRING}, "What is wrong with one field.")
    info: Schema = {
        "@type": {"const": _INFO},
        "reason": {"enum": sorted({error.reason for error in CODES})},
        "domain": {"const": DOMAIN},
        "metadata": {"type": "object", "additionalProperties": _STRING, "required": ["timestamp"]},
    }
    bad_request: Schema = {"@type": {"const": _BAD_REQUEST}, "fieldViolations": {"type": "array", "items": violation}}
    status: Schema = {
        "code": {"enum": sorted({codes.http for codes in CODES.values()}), "description": "The HTTP status."},
        "status": {"enum": sorted({codes.grpc for codes in CODES.values()})},
        "message": {"type": "string", "minLength": 1},
        "details": {
            "type": "array",
            "prefixItems": [{"$ref": "#/components/schemas/ErrorInfo"}],
            "items": {"$ref": "#/components/schemas/BadRequest"},
            "minItems": 1,
            "maxItems": 2,
        },
    }
    return {
        "ErrorInfo": _object(info, "google.rpc.ErrorInfo: why, as a constant."),
        "BadRequest": _object(bad_request, "google.rpc.BadRequest: the fields that are wrong."),
        "ErrorV03": _object(
            {
                "error": _STRING,
                "type": {"enum": sorted(error.__name__ for error in CODES)},
                "code": {"enum": sorted({codes.jsonrpc for codes in CODES.values()})},
                "message": status["message"],
                "data": status["details"],
            },
            "An error reply of 0.3: the error object of JSON-RPC with the name of the error.",
        ),
        "Error": _object(
            {"error": _object(status, "google.rpc.Status in the JSON of AIP-193.")}, "An error reply (§11.6)."
        ),
    }


def error_responses() -> dict[str, Schema]:
    """The response components, by name."""
    contents = {
        "": {media_type: {"schema": {"$ref": "#/components/schemas/Error"}} for media_type in JSON_TYPES},
        "V03": {JSON_TYPES[1]: {"schema": {"$ref": "#/components/schemas/ErrorV03"}}},
    }
    return {
        f"Error{status}{suffix}": {"description": ", ".join(reasons), "content": content}
        | ({"headers": _HEADERS[status]} if status in _HEADERS else {})
        for suffix, content in contents.items()
        for status, reasons in _reasons().items()
    }


def error_references(has_body: bool, suffix: str = "") -> dict[str, Schema]:
    """The error replies of an operation by status, as references. `suffix` is that of the version."""
    statuses = [status for status in _reasons() if has_body or status not in _NEEDS_BODY]
    return {str(status): {"$ref": f"#/components/responses/Error{status}{suffix}"} for status in statuses}


def _object(properties: dict[str, Schema], description: str) -> Schema:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
