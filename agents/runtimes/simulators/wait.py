"""`wait`: asks, and stays in its process until it is answered."""

from __future__ import annotations

from agents.runtimes.base import Answer, Run, Updates
from agents.runtimes.simulators.common import ANY_MODES, Simulator, say
from protocol.model import Artifact
from protocol.states import TaskState


class Wait(Simulator):
    """INPUT_REQUIRED, or AUTH_REQUIRED for `wait auth`; waits in its process. The answer comes back as an artifact.

    It is REJECTED if a person at the host refuses. If its process dies, the answer begins a new run.
    """

    summary = "Asks for input, or with `wait auth` for an authorization, and waits in its process for the answer."
    example = "wait"
    input_modes = ANY_MODES
    output_modes = ANY_MODES
    decides_refusals = True

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        if run.task is None:
            if "auth" in run.text.lower().split():
                await updates.status(TaskState.AUTH_REQUIRED, say(run, "May I go on?"))
            else:
                await updates.status(TaskState.INPUT_REQUIRED, say(run, "What should I know before I go on?"))
            answer = await updates.answer()
        else:
            answer = Answer(run.message, run.answered)
        if answer.answered is not None and answer.answered.approved is False:
            await updates.status(TaskState.REJECTED, say(run, f"{answer.answered.by} refused."))
            return
        artifact = Artifact(artifact_id=f"{run.task_id}.answer", name="answer", parts=answer.message.parts)
        await updates.artifact(artifact, last_chunk=True)
        await updates.status(TaskState.COMPLETED)
