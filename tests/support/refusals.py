"""Error replies, checked for the form of their binding (§9.5, §11.6) and the codes that §5.4 pairs with a reason."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo  # noqa: F401 - MessageToDict needs them known
from google.rpc.status_pb2 import Status

INFO = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
# Reason: JSON-RPC code, its HTTP status, HTTP+JSON status, google.rpc code (§5.4, §9.5, §11.6).
CODES = {
    "TASK_NOT_FOUND": (-32001, 200, 404, "NOT_FOUND"),
    "TASK_NOT_CANCELABLE": (-32002, 200, 400, "FAILED_PRECONDITION"),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (-32003, 200, 400, "FAILED_PRECONDITION"),
    "UNSUPPORTED_OPERATION": (-32004, 200, 400, "FAILED_PRECONDITION"),
    "CONTENT_TYPE_NOT_SUPPORTED": (-32005, 200, 400, "INVALID_ARGUMENT"),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": (-32007, 200, 400, "FAILED_PRECONDITION"),
    "EXTENSION_SUPPORT_REQUIRED": (-32008, 200, 400, "FAILED_PRECONDITION"),
    "VERSION_NOT_SUPPORTED": (-32009, 200, 400, "FAILED_PRECONDITION"),
    "PARSE_ERROR": (-32700, 200, 400, "INVALID_ARGUMENT"),
    "INVALID_REQUEST": (-32600, 200, 400, "INVALID_ARGUMENT"),
    "METHOD_NOT_FOUND": (-32601, 200, 404, "UNIMPLEMENTED"),
    "INVALID_PARAMS": (-32602, 200, 400, "INVALID_ARGUMENT"),
    "UNAUTHENTICATED": (-32000, 401, 401, "UNAUTHENTICATED"),
    "AGENT_NOT_FOUND": (-32000, 404, 404, "NOT_FOUND"),
    "NOT_FOUND": (-32601, 404, 404, "NOT_FOUND"),
    "METHOD_NOT_ALLOWED": (-32600, 405, 405, "UNIMPLEMENTED"),
    "REQUEST_TOO_LARGE": (-32600, 413, 413, "RESOURCE_EXHAUSTED"),
    "UNSUPPORTED_MEDIA_TYPE": (-32005, 415, 415, "INVALID_ARGUMENT"),
    "UPGRADE_REQUIRED": (-32600, 426, 426, "FAILED_PRECONDITION"),
    "INTERNAL": (-32603, 200, 500, "INTERNAL"),
    "UNAVAILABLE": (-32603, 503, 503, "UNAVAILABLE"),
}

# Reason: the code that drafts before 0.3 had. What a task's state forbids has none, except for a canceled task.
LEGACY_CODES = {
    "AGENT_NOT_FOUND": "-32100",
    "UNAVAILABLE": "-32101",
    "TASK_NOT_FOUND": "-32102",
    "PUSH_NOTIFICATION_NOT_SUPPORTED": "-32105",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": "-32105",
    "UNSUPPORTED_OPERATION": "-32105",
    "UNAUTHENTICATED": "-32106",
    "PERMISSION_DENIED": "-32107",
}
TASK_CANCELED = "-32104"

ID = "q1"
"""The id of the requests that peers send."""


class Refused(Exception):
    """An error reply. `fields` are those of its BadRequest, `metadata` without the timestamp and the legacy code."""

    def __init__(self, code: int, status: int, message: str, details: list[dict[str, Any]]) -> None:
        info, *more = details
        assert info["@type"] == INFO
        assert info["domain"] == "a2a-protocol.org"
        assert all(isinstance(value, str) for value in info["metadata"].values())
        assert [detail["@type"] for detail in more] == [BAD_REQUEST] * len(more)
        self.code = code
        self.status = status
        self.message = message
        self.reason: str = info["reason"]
        self.metadata = {n: v for n, v in info["metadata"].items() if n not in ("timestamp", "legacyCode")}
        self.legacy_code: str | None = info["metadata"].get("legacyCode")
        assert self.legacy_code == expected_legacy_code(self.reason, self.metadata)
        self.violations: dict[str, str] = {
            one["field"]: one["description"] for detail in more for one in detail["fieldViolations"]
        }
        super().__init__(f"{code} {self.reason}: {message} {self.violations or self.metadata}")

    @property
    def fields(self) -> list[str]:
        """Which fields were wrong, in order."""
        return list(self.violations)


def expected_legacy_code(reason: str, metadata: dict[str, str]) -> str | None:
    """What an ErrorInfo must have as its `legacyCode`."""
    if metadata.get("state") == "TASK_STATE_CANCELED":
        return TASK_CANCELED
    if reason == "UNSUPPORTED_OPERATION" and "taskId" in metadata:
        return None
    return LEGACY_CODES.get(reason)


def refusal_of_rpc(status: int, reply: dict[str, Any], id: Any = ID) -> Refused:
    """The error of a JSON-RPC reply, whose id must be `id`."""
    assert list(reply) == ["jsonrpc", "id", "error"]
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", id)
    error = reply["error"]
    assert list(error) == ["code", "message", "data"]
    refused = Refused(error["code"], status, error["message"], error["data"])
    assert CODES[refused.reason][:2] == (refused.code, status), refused
    return refused


def refusal_of_rest(status: int, reply: dict[str, Any]) -> Refused:
    """The error of an HTTP+JSON reply (§11.6)."""
    assert list(reply) == ["error"]
    error = reply["error"]
    assert list(error) == ["code", "status", "message", "details"]
    refused = Refused(CODES[error["details"][0]["reason"]][0], status, error["message"], error["details"])
    assert CODES[refused.reason][2:] == (status, error["status"]), refused
    assert error["code"] == status
    return refused


def refusal_of_grpc(error: Any) -> Refused:
    """The error status of a gRPC call (§10.6), whose details must say what code and message say."""
    (packed,) = [value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin"]
    status = Status.FromString(packed)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    details = [json_format.MessageToDict(detail) for detail in status.details]
    named = [detail for detail in details if detail["@type"] in (INFO, BAD_REQUEST)]
    code, _, http, name = CODES[named[0]["reason"]]
    assert error.code().name == name, (named[0]["reason"], name)
    return Refused(code, http, status.message, named)
