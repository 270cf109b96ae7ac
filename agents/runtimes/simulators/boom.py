"""`boom [n]`: breaks."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import Simulator, numbers, text_artifact
from agents.runtimes.simulators.steps import MAX_STEPS
from protocol.states import TaskState


class Boom(Simulator):
    """Raises at once, or with `boom n`, `boom after n` or `n` after n chunks of one artifact."""

    summary = "Raises an exception, at once or after n chunks: `boom [n]`."
    example = "boom 2"

    async def execute(self, run: Run, updates: Updates) -> None:
        given = numbers(run.text, "boom", "after")
        chunks = min(int(given[0]), MAX_STEPS) if given else 0
        if chunks:
            await updates.status(TaskState.WORKING)
        for chunk in range(1, chunks + 1):
            await updates.artifact(text_artifact(run, "boom", f"chunk {chunk}\n"), append=chunk > 1)
        raise RuntimeError("boom, as asked")
