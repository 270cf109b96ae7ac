"""`reject`: takes no work."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import ANY_MODES, Simulator, say
from protocol.states import TaskState


class Reject(Simulator):
    """REJECTED, whatever it is sent."""

    summary = "Rejects every task."
    example = "do something"
    input_modes = ANY_MODES

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.REJECTED, say(run, "I take no work."))
