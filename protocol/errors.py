"""One tree of errors, in the protocol's words. Each binding maps the classes to its codes (§5.4); none is known here.

The docstring of a class is its default message. Messages are read by callers: they never hold internals.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec import Raw

# What a caller sent is repeated in errors up to here.
_ECHO_MAX = 200


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong with one field.

    `field` is its path in the request, such as `message.parts[0]`; "" is the request itself.
    """

    field: str
    description: str


class A2AError(Exception):
    """The request failed."""

    # The name in UPPER_SNAKE without "Error" (§11.6), for google.rpc.ErrorInfo.
    reason: ClassVar[str] = "UNKNOWN"

    def __init__(self, message: str = "", metadata: dict[str, str] | None = None) -> None:
        self.message = message or inspect.cleandoc(type(self).__doc__ or "")
        self.metadata: dict[str, str] = metadata or {}
        super().__init__(self.message)


# The errors of A2A, §3.3.2.


class TaskNotFoundError(A2AError):
    """The task was not found or is not accessible."""

    reason = "TASK_NOT_FOUND"

    def __init__(self, task_id: str, message: str = "", metadata: dict[str, str] | None = None) -> None:
        super().__init__(message, {"taskId": task_id, **(metadata or {})})


class PushNotificationConfigNotFoundError(TaskNotFoundError):
    """The push notification config was not found or is not accessible."""

    # §3.1.8 names TaskNotFoundError for a missing config, so the reason stays; the metadata tells them apart.

    def __init__(self, task_id: str, config_id: str) -> None:
        super().__init__(task_id, metadata={"pushNotificationConfigId": config_id})


class TaskNotCancelableError(A2AError):
    """The task is in a state that cannot be canceled."""

    reason = "TASK_NOT_CANCELABLE"

    def __init__(self, task_id: str, state: str = "") -> None:
        super().__init__(metadata={"taskId": task_id, "state": state} if state else {"taskId": task_id})


class PushNotificationNotSupportedError(A2AError):
    """The agent does not support push notifications."""

    reason = "PUSH_NOTIFICATION_NOT_SUPPORTED"


class UnsupportedOperationError(A2AError):
    """The agent does not support this operation."""

    reason = "UNSUPPORTED_OPERATION"


class ContentTypeNotSupportedError(A2AError):
    """The agent does not accept this media type."""

    reason = "CONTENT_TYPE_NOT_SUPPORTED"

    def __init__(self, media_type: str = "", message: str = "") -> None:
        super().__init__(message, {"mediaType": media_type} if media_type else {})


class InvalidAgentResponseError(A2AError):
    """The agent gave a response that does not conform to the specification."""

    reason = "INVALID_AGENT_RESPONSE"


class ExtendedAgentCardNotConfiguredError(A2AError):
    """The agent has no extended agent card."""

    reason = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"


class ExtensionSupportRequiredError(A2AError):
    """The agent requires an extension that the request does not declare."""

    reason = "EXTENSION_SUPPORT_REQUIRED"

    def __init__(self, uris: Collection[str] = ()) -> None:
        super().__init__(metadata={"extensions": ", ".join(uris)} if uris else {})


class VersionNotSupportedError(A2AError):
    """This version of the protocol is not supported."""

    reason = "VERSION_NOT_SUPPORTED"

    def __init__(self, version: str, supported: Collection[str]) -> None:
        version, known = version[:_ECHO_MAX], ", ".join(supported)
        super().__init__(
            f"Version {version!r} of the protocol is not supported; supported: {known}.",
            {"version": version, "supportedVersions": known},
        )


# The errors of JSON-RPC, §9.5; the other bindings have their own codes for the same faults.


class ParseError(A2AError):
    """Invalid JSON payload"""

    reason = "PARSE_ERROR"


class InvalidRequestError(A2AError):
    """Request payload validation error"""

    reason = "INVALID_REQUEST"


class EnvelopeError(InvalidRequestError):
    """Request payload validation error"""

    def __init__(self, message: str = "", id: Raw | None = None) -> None:
        super().__init__(message)
        # What the reply must carry as its id: null when the request's own id is unusable.
        self.id = Raw(b"null") if id is None else id


class MethodNotFoundError(A2AError):
    """Method not found"""

    reason = "METHOD_NOT_FOUND"

    def __init__(self, method: str) -> None:
        super().__init__(metadata={"method": method[:_ECHO_MAX]})


class InvalidParamsError(A2AError):
    """Invalid parameters"""

    reason = "INVALID_PARAMS"

    def __init__(self, violations: Sequence[Violation] = (), message: str = "") -> None:
        super().__init__(message)
        self.violations = list(violations)


class InternalError(A2AError):
    """Internal error"""

    reason = "INTERNAL"


# The errors of the host, outside of any operation.


class UnauthenticatedError(A2AError):
    """Authentication is required."""

    reason = "UNAUTHENTICATED"

    def __init__(self, challenge: str, message: str = "") -> None:
        super().__init__(message)
        # Value of WWW-Authenticate, such as `Bearer realm="orders"` (§7.4).
        self.challenge = challenge


class PermissionDeniedError(A2AError):
    """The caller may not do this."""

    reason = "PERMISSION_DENIED"


class AgentNotFoundError(A2AError):
    """The agent does not exist."""

    reason = "AGENT_NOT_FOUND"

    def __init__(self, slug: str) -> None:
        super().__init__(metadata={"agent": slug[:_ECHO_MAX]})


class RequestTooLargeError(A2AError):
    """The request is too large."""

    reason = "REQUEST_TOO_LARGE"

    def __init__(self, limit: int) -> None:
        super().__init__(f"The request is larger than {limit} bytes.", {"limitBytes": str(limit)})
        self.limit = limit


class UnsupportedMediaTypeError(A2AError):
    """The Content-Type of the request is not supported."""

    reason = "UNSUPPORTED_MEDIA_TYPE"

    def __init__(self, content_type: str) -> None:
        super().__init__(metadata={"contentType": content_type[:_ECHO_MAX]})


class RouteNotFoundError(A2AError):
    """There is nothing at this path."""

    reason = "NOT_FOUND"

    def __init__(self, path: str) -> None:
        super().__init__(metadata={"path": path[:_ECHO_MAX]})


class MethodNotAllowedError(A2AError):
    """This HTTP method is not allowed here."""

    reason = "METHOD_NOT_ALLOWED"

    def __init__(self, allowed: Collection[str]) -> None:
        self.allowed = tuple(allowed)
        super().__init__(metadata={"allowed": ", ".join(self.allowed)})


class UpgradeRequiredError(A2AError):
    """Only WebSocket connections are taken here."""

    reason = "UPGRADE_REQUIRED"

    def __init__(self, protocol: str) -> None:
        super().__init__(metadata={"upgrade": protocol})
        # Value of Upgrade, such as `websocket` (RFC 9110 §15.5.22).
        self.protocol = protocol


class UnavailableError(A2AError):
    """The service is busy; try again later."""

    reason = "UNAVAILABLE"

    def __init__(self, retry_after: int, message: str = "") -> None:
        super().__init__(message)
        # Seconds.
        self.retry_after = retry_after
