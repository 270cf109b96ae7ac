"""`auth`: needs an authorization from its caller."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import ANY_MODES, Simulator, say
from protocol.states import TaskState


class Auth(Simulator):
    """AUTH_REQUIRED with a message (§7.6); any follow-up completes the task."""

    summary = "Asks for an authorization (AUTH_REQUIRED) and completes with any follow-up."
    example = "read my calendar"
    # Credentials may come as a data part.
    input_modes = ANY_MODES

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        if run.task is None:
            await updates.status(TaskState.AUTH_REQUIRED, say(run, "Authorize me, then send a message to go on."))
            return
        await updates.status(TaskState.COMPLETED, say(run, "Authorized."))
