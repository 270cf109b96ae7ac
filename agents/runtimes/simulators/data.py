"""`data`: every part comes back as it was."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import ANY_MODES, Simulator
from protocol.model import Artifact
from protocol.states import TaskState


class Data(Simulator):
    """One artifact with the received parts, unchanged, then COMPLETED."""

    summary = "Returns the parts that it was sent, of any media type, as an artifact."
    example = "hello"
    input_modes = ANY_MODES
    output_modes = ANY_MODES

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        artifact = Artifact(artifact_id=f"{run.task_id}.data", name="data", parts=run.message.parts)
        await updates.artifact(artifact, last_chunk=True)
        await updates.status(TaskState.COMPLETED)
