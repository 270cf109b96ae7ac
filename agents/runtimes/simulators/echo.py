"""`echo`: the text comes back as an artifact."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import Simulator, text_artifact
from protocol.states import TaskState


class Echo(Simulator):
    """One artifact with the same text, then COMPLETED. Never gives up the event loop: it measures the host."""

    summary = "Returns the text that it was sent as an artifact."
    example = "hello"

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        await updates.artifact(text_artifact(run, "echo", run.text), last_chunk=True)
        await updates.status(TaskState.COMPLETED)
