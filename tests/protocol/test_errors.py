"""The tree of errors (§3.3.2)."""

from __future__ import annotations

import pytest

from protocol import errors
from protocol.errors import A2AError


def every(kind: type[A2AError]) -> set[type[A2AError]]:
    return {kind}.union(*(every(child) for child in kind.__subclasses__() if child.__module__ == errors.__name__))


@pytest.mark.spec("11.6")
def test_reasons_are_the_names_in_upper_snake() -> None:
    reasons = {kind.__name__: kind.reason for kind in every(A2AError)}
    assert reasons == {
        "A2AError": "UNKNOWN",
        "TaskNotFoundError": "TASK_NOT_FOUND",
        "PushNotificationConfigNotFoundError": "TASK_NOT_FOUND",
        "TaskNotCancelableError": "TASK_NOT_CANCELABLE",
        "PushNotificationNotSupportedError": "PUSH_NOTIFICATION_NOT_SUPPORTED",
        "UnsupportedOperationError": "UNSUPPORTED_OPERATION",
        "ContentTypeNotSupportedError": "CONTENT_TYPE_NOT_SUPPORTED",
        "InvalidAgentResponseError": "INVALID_AGENT_RESPONSE",
        "ExtendedAgentCardNotConfiguredError": "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        "ExtensionSupportRequiredError": "EXTENSION_SUPPORT_REQUIRED",
        "VersionNotSupportedError": "VERSION_NOT_SUPPORTED",
        "ParseError": "PARSE_ERROR",
        "InvalidRequestError": "INVALID_REQUEST",
        "EnvelopeError": "INVALID_REQUEST",
        "MethodNotFoundError": "METHOD_NOT_FOUND",
        "InvalidParamsError": "INVALID_PARAMS",
        "InternalError": "INTERNAL",
        "UnauthenticatedError": "UNAUTHENTICATED",
        "PermissionDeniedError": "PERMISSION_DENIED",
        "AgentNotFoundError": "AGENT_NOT_FOUND",
        "RequestTooLargeError": "REQUEST_TOO_LARGE",
        "UnsupportedMediaTypeError": "UNSUPPORTED_MEDIA_TYPE",
        "RouteNotFoundError": "NOT_FOUND",
        "MethodNotAllowedError": "METHOD_NOT_ALLOWED",
        "UpgradeRequiredError": "UPGRADE_REQUIRED",
        "UnavailableError": "UNAVAILABLE",
    }


@pytest.mark.spec("9.5")
def test_json_rpc_errors_have_their_standard_messages() -> None:
    made: list[A2AError] = [
        errors.ParseError(),
        errors.InvalidRequestError(),
        errors.EnvelopeError(),
        errors.MethodNotFoundError("Nope"),
        errors.InvalidParamsError(),
        errors.InternalError(),
    ]
    assert [error.message for error in made] == [
        "Invalid JSON payload",
        "Request payload validation error",
        "Request payload validation error",
        "Method not found",
        "Invalid parameters",
        "Internal error",
    ]


@pytest.mark.spec("3.3.2")
@pytest.mark.parametrize(
    ("error", "message", "metadata"),
    [
        (errors.TaskNotFoundError("t"), "The task was not found or is not accessible.", {"taskId": "t"}),
        (
            errors.PushNotificationConfigNotFoundError("t", "c"),
            "The push notification config was not found or is not accessible.",
            {"taskId": "t", "pushNotificationConfigId": "c"},
        ),
        (
            errors.TaskNotCancelableError("t", "TASK_STATE_COMPLETED"),
            "The task is in a state that cannot be canceled.",
            {"taskId": "t", "state": "TASK_STATE_COMPLETED"},
        ),
        (
            errors.VersionNotSupportedError("9" * 300, ["1.0", "0.3"]),
            f"Version '{'9' * 200}' of the protocol is not supported; supported: 1.0, 0.3.",
            {"version": "9" * 200, "supportedVersions": "1.0, 0.3"},
        ),
        (
            errors.ContentTypeNotSupportedError("image/png"),
            "The agent does not accept this media type.",
            {"mediaType": "image/png"},
        ),
        (
            errors.ExtensionSupportRequiredError(["u:1", "u:2"]),
            "The agent requires an extension that the request does not declare.",
            {"extensions": "u:1, u:2"},
        ),
        (errors.RequestTooLargeError(9), "The request is larger than 9 bytes.", {"limitBytes": "9"}),
        (errors.MethodNotFoundError("x" * 300), "Method not found", {"method": "x" * 200}),
        (
            errors.MethodNotAllowedError(["GET", "POST"]),
            "This HTTP method is not allowed here.",
            {"allowed": "GET, POST"},
        ),
        (
            errors.UpgradeRequiredError("websocket"),
            "Only WebSocket connections are taken here.",
            {"upgrade": "websocket"},
        ),
        (errors.AgentNotFoundError("a"), "The agent does not exist.", {"agent": "a"}),
        (errors.UnsupportedOperationError("The task is over."), "The task is over.", {}),
    ],
)
def test_messages_and_metadata(error: A2AError, message: str, metadata: dict[str, str]) -> None:
    assert (error.message, str(error), error.metadata) == (message, message, metadata)


def test_errors_carry_what_a_binding_needs() -> None:
    assert errors.UnauthenticatedError('Bearer realm="x"').challenge == 'Bearer realm="x"'
    assert errors.UnavailableError(3).retry_after == 3
    assert errors.MethodNotAllowedError(["GET"]).allowed == ("GET",)
    assert bytes(errors.EnvelopeError().id) == b"null"
    violation = errors.Violation("message.parts", "is required")
    assert errors.InvalidParamsError([violation]).violations == [violation]


def test_metadata_is_not_shared() -> None:
    errors.InternalError().metadata["a"] = "b"
    assert errors.InternalError().metadata == {}
