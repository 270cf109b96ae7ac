"""How the states of a task look: label, colour and icon, so that colour never carries the meaning alone."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.states import TaskState


@dataclass(frozen=True, slots=True)
class Look:
    """`key` names the state in URLs and in CSS classes (`state-<key>`), `icon` a symbol of icons.svg."""

    state: TaskState
    key: str
    label: str
    icon: str

    @property
    def number(self) -> int:
        """What the database stores."""
        return self.state.number


LOOKS = [
    Look(TaskState.SUBMITTED, "submitted", "Submitted", "clock"),
    Look(TaskState.WORKING, "working", "Working", "spinner"),
    Look(TaskState.INPUT_REQUIRED, "input-required", "Input required", "question"),
    Look(TaskState.AUTH_REQUIRED, "auth-required", "Auth required", "lock"),
    Look(TaskState.COMPLETED, "completed", "Completed", "check"),
    Look(TaskState.FAILED, "failed", "Failed", "cross"),
    Look(TaskState.CANCELED, "canceled", "Canceled", "slash"),
    Look(TaskState.REJECTED, "rejected", "Rejected", "minus"),
    Look(TaskState.UNSPECIFIED, "reply", "Direct reply", "reply"),
]
BY_NUMBER = {look.number: look for look in LOOKS}
BY_KEY = {look.key: look for look in LOOKS}
