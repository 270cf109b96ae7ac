"""Error codes of the drafts before 0.3, which clients written from them look for: `legacyCode` in the error details."""

from __future__ import annotations

from protocol import errors
from protocol.errors import A2AError
from protocol.states import TaskState

TASK_CANCELED = -32104
LEGACY_CODES: dict[type[A2AError], int] = {
    errors.AgentNotFoundError: -32100,
    errors.UnavailableError: -32101,  # Agent Not Ready
    errors.TaskNotFoundError: -32102,
    # -32103, Task Timeout, is no error here: the task is FAILED and says why.
    errors.PushNotificationNotSupportedError: -32105,  # Capability Not Supported
    errors.ExtendedAgentCardNotConfiguredError: -32105,
    errors.UnsupportedOperationError: -32105,
    errors.UnauthenticatedError: -32106,
    errors.PermissionDeniedError: -32107,
}


def legacy_code(error: A2AError) -> int | None:
    """The code of the drafts for an error; None for one that they have no code for.

    What cannot be done because of the state of a task is no missing capability; only CANCELED has a code then.
    """
    if error.metadata.get("state") == TaskState.CANCELED:
        return TASK_CANCELED
    if isinstance(error, errors.UnsupportedOperationError) and "taskId" in error.metadata:
        return None
    return next((LEGACY_CODES[cls] for cls in type(error).__mro__ if cls in LEGACY_CODES), None)
