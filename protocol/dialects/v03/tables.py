"""Names that 0.3 and 1.0 spell differently."""

from __future__ import annotations

from enum import StrEnum

from protocol.model import Role
from protocol.states import TERMINAL, TaskState


class Role03(StrEnum):
    """Who sent a message (0.3 §6.4)."""

    USER = "user"
    AGENT = "agent"


class State03(StrEnum):
    """State of a task (0.3 §6.3)."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"
    REJECTED = "rejected"
    AUTH_REQUIRED = "auth-required"
    UNKNOWN = "unknown"


class ProtoState(StrEnum):
    """State of a task in the 0.3 protobuf definition: CANCELLED has two L there, as the one difference to 1.0."""

    UNSPECIFIED = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELLED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"


ROLES: dict[Role, Role03] = {Role.USER: Role03.USER, Role.AGENT: Role03.AGENT}
ROLES_1_0 = {old: new for new, old in ROLES.items()}

STATES: dict[TaskState, State03] = {
    state: State03.UNKNOWN if state is TaskState.UNSPECIFIED else State03[state.name] for state in TaskState
}
PROTO_STATES: dict[TaskState, ProtoState] = {state: ProtoState[state.name] for state in TaskState}

# `final` tells a 0.3 client that the stream ends: it does at these states, and stays open for AUTH_REQUIRED (§7.6.1).
FINAL = TERMINAL | {TaskState.INPUT_REQUIRED}
