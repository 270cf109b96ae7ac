"""`ask`: needs a second message."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import Simulator, say, text_artifact
from protocol.states import TaskState


class Ask(Simulator):
    """INPUT_REQUIRED with a question; any follow-up completes the task with an artifact that quotes the answer."""

    summary = "Asks a question back (INPUT_REQUIRED) and completes with any answer."
    example = "book a table"

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        if run.task is None:
            await updates.status(TaskState.INPUT_REQUIRED, say(run, "What should I know before I go on?"))
            return
        await updates.artifact(text_artifact(run, "answer", run.text), last_chunk=True)
        await updates.status(TaskState.COMPLETED)
