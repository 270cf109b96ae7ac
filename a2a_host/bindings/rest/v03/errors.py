"""How 0.3 tells errors over HTTP."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from a2a_host.bindings.errors import CODES, codes_of, details_of, error_headers
from a2a_host.bindings.rest.framework import as_a2a_error
from protocol.errors import A2AError, ExtendedAgentCardNotConfiguredError, InternalError

_OTHER_NAMES: dict[type[A2AError], str] = {
    ExtendedAgentCardNotConfiguredError: "AuthenticatedExtendedCardNotConfiguredError",
}


def http_error_v03(error: A2AError) -> dict[str, Any]:
    """0.3 §7.1 asks for the error object of JSON-RPC "or equivalent" and says no more: that object, and the name of the
    error where its clients look for it, in `error` (SDK for Java, test kit) or `type` (SDK for Python)."""
    known = next((cls for cls in type(error).__mro__ if cls in CODES), InternalError)
    return {
        "error": _OTHER_NAMES.get(known, known.__name__),
        "type": known.__name__,
        "code": codes_of(error).jsonrpc,
        "message": error.message,
        "data": details_of(error),
    }


def error_response_v03(error: Exception, context: Any) -> Response:
    """The reply to a request that a view could not answer."""
    known = as_a2a_error(error, context["request"])
    headers = {name.decode(): value.decode() for name, value in error_headers(known)}
    return Response(http_error_v03(known), status=codes_of(known).http, headers=headers)
