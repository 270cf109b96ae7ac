"""What is wrong with an agent's code, or with what it asks of the host, in words for the person who wrote it."""

from __future__ import annotations

NO_ANSWER_TEXT = "A run that has ended waits for no answer."


class ExecutorError(Exception):
    """The code that an agent names cannot be loaded. The text holds no path and no traceback."""


class DelegationError(Exception):
    """A task could not be delegated. The text says why; `reason` is the error in one word, such as AGENT_NOT_FOUND."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class RunEndedError(DelegationError):
    """This run of the task has ended, so it delegates nothing any more."""

    def __init__(self) -> None:
        super().__init__(str(type(self).__doc__), "RUN_ENDED")
