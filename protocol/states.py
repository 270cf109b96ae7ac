"""The life of a task (§4.1.3) as a table."""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    """States by their names in JSON. UNSPECIFIED marks an exchange that was answered with a Message: no task."""

    UNSPECIFIED = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"

    @property
    def number(self) -> int:
        """Number in the protobuf definition; what the database stores."""
        return NUMBERS[self]

    @classmethod
    def from_number(cls, number: int) -> TaskState:
        """The state with a protobuf number. Raises KeyError for any other."""
        return BY_NUMBER[number]

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return self in TERMINAL

    @property
    def settled(self) -> bool:
        """Whether a blocking send returns at this state: terminal or interrupted (§3.2.2)."""
        return self in SETTLED


NUMBERS = {state: number for number, state in enumerate(TaskState)}
BY_NUMBER = dict(enumerate(TaskState))
TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
SETTLED = TERMINAL | INTERRUPTED
FRUITLESS = TERMINAL - {TaskState.COMPLETED}
RUNNING = frozenset({TaskState.SUBMITTED, TaskState.WORKING})

_ACTIVE = SETTLED | {TaskState.WORKING}
_NONE: frozenset[TaskState] = frozenset()
MOVES: dict[TaskState, frozenset[TaskState]] = {
    TaskState.SUBMITTED: _ACTIVE | {TaskState.SUBMITTED, TaskState.UNSPECIFIED},
    TaskState.WORKING: _ACTIVE,
    TaskState.INPUT_REQUIRED: _ACTIVE,
    TaskState.AUTH_REQUIRED: _ACTIVE,
    TaskState.COMPLETED: _NONE,
    TaskState.FAILED: _NONE,
    TaskState.CANCELED: _NONE,
    TaskState.REJECTED: _NONE,
    TaskState.UNSPECIFIED: _NONE,
}


def may_move(old: TaskState, new: TaskState) -> bool:
    """Whether a task in `old` may be given the state `new`. Terminal states absorb."""
    return new in MOVES[old]
