"""The codes of each error in each binding (§5.4), and the error documents of JSON-RPC (§9.5) and HTTP (§11.6)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from a2a_host.bindings.legacy_codes import legacy_code
from protocol import errors
from protocol.errors import A2AError, InvalidParamsError, UnauthenticatedError
from protocol.timestamps import now, print_timestamp

DOMAIN = "a2a-protocol.org"
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


class Codes(NamedTuple):
    """JSON-RPC error code, HTTP status, gRPC status name, and the HTTP status that carries a JSON-RPC reply."""

    jsonrpc: int
    http: int
    grpc: str
    jsonrpc_http: int = 200


CODES: dict[type[A2AError], Codes] = {
    errors.TaskNotFoundError: Codes(-32001, 404, "NOT_FOUND"),
    errors.TaskNotCancelableError: Codes(-32002, 400, "FAILED_PRECONDITION"),
    errors.PushNotificationNotSupportedError: Codes(-32003, 400, "FAILED_PRECONDITION"),
    errors.UnsupportedOperationError: Codes(-32004, 400, "FAILED_PRECONDITION"),
    errors.ContentTypeNotSupportedError: Codes(-32005, 400, "INVALID_ARGUMENT"),
    errors.InvalidAgentResponseError: Codes(-32006, 500, "INTERNAL"),
    errors.ExtendedAgentCardNotConfiguredError: Codes(-32007, 400, "FAILED_PRECONDITION"),
    errors.ExtensionSupportRequiredError: Codes(-32008, 400, "FAILED_PRECONDITION"),
    errors.VersionNotSupportedError: Codes(-32009, 400, "FAILED_PRECONDITION"),
    errors.ParseError: Codes(-32700, 400, "INVALID_ARGUMENT"),
    errors.InvalidRequestError: Codes(-32600, 400, "INVALID_ARGUMENT"),
    errors.MethodNotFoundError: Codes(-32601, 404, "UNIMPLEMENTED"),
    errors.InvalidParamsError: Codes(-32602, 400, "INVALID_ARGUMENT"),
    errors.InternalError: Codes(-32603, 500, "INTERNAL"),
    # Errors of the host have the one implementation-defined code of JSON-RPC that A2A leaves free.
    errors.UnauthenticatedError: Codes(-32000, 401, "UNAUTHENTICATED", 401),
    errors.PermissionDeniedError: Codes(-32000, 403, "PERMISSION_DENIED", 403),
    errors.AgentNotFoundError: Codes(-32000, 404, "NOT_FOUND", 404),
    errors.RouteNotFoundError: Codes(-32601, 404, "NOT_FOUND", 404),
    errors.MethodNotAllowedError: Codes(-32600, 405, "UNIMPLEMENTED", 405),
    errors.RequestTooLargeError: Codes(-32600, 413, "RESOURCE_EXHAUSTED", 413),
    errors.UnsupportedMediaTypeError: Codes(-32005, 415, "INVALID_ARGUMENT", 415),
    errors.UpgradeRequiredError: Codes(-32600, 426, "FAILED_PRECONDITION", 426),
    errors.UnavailableError: Codes(-32603, 503, "UNAVAILABLE", 503),
}


def codes_of(error: A2AError) -> Codes:
    """The codes of an error's class, or of the nearest class above it."""
    for cls in type(error).__mro__:
        if cls in CODES:
            return CODES[cls]
    return CODES[errors.InternalError]


def details_of(error: A2AError) -> list[dict[str, Any]]:
    """google.rpc details: an ErrorInfo, and a BadRequest with the fields that are wrong."""
    metadata = {**error.metadata, "timestamp": print_timestamp(now())}
    legacy = legacy_code(error)
    if legacy is not None:
        metadata["legacyCode"] = str(legacy)
    details: list[dict[str, Any]] = [
        {"@type": _INFO, "reason": error.reason, "domain": DOMAIN, "metadata": metadata},
    ]
    if isinstance(error, InvalidParamsError) and error.violations:
        violations = [{"field": v.field, "description": v.description} for v in error.violations]
        details.append({"@type": _BAD_REQUEST, "fieldViolations": violations})
    return details


def jsonrpc_error(error: A2AError, request_id: Raw) -> bytes:
    """A JSON-RPC error response (§9.5)."""
    body = {"code": codes_of(error).jsonrpc, "message": error.message, "data": details_of(error)}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": body})


def http_error(error: A2AError) -> dict[str, Any]:
    """A google.rpc.Status document (§11.6)."""
    codes = codes_of(error)
    status = {"code": codes.http, "status": codes.grpc, "message": error.message, "details": details_of(error)}
    return {"error": status}


def error_headers(error: A2AError) -> list[tuple[bytes, bytes]]:
    """Headers that belong to an error: challenge (§7.4), methods allowed, protocol asked for, when to try again."""
    if isinstance(error, UnauthenticatedError):
        return [(b"www-authenticate", error.challenge.encode())]
    if isinstance(error, errors.MethodNotAllowedError):
        return [(b"allow", ", ".join(error.allowed).encode())]
    if isinstance(error, errors.UpgradeRequiredError):
        return [(b"upgrade", error.protocol.encode()), (b"connection", b"upgrade")]  # RFC 9110 §7.8: both
    if isinstance(error, errors.UnavailableError):
        return [(b"retry-after", str(error.retry_after).encode())]
    return []
