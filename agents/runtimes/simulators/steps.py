"""`steps N [ms]`: an artifact in chunks."""

from __future__ import annotations

import asyncio

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import Simulator, numbers, say, text_artifact
from protocol.states import TaskState

MAX_STEPS = 10_000
MAX_PAUSE_MS = 60_000
DEFAULT_STEPS = 3
DEFAULT_PAUSE_MS = 200


class Steps(Simulator):
    """WORKING, N chunks of one artifact with a pause before each, COMPLETED. `steps N [ms]` or only `N [ms]`."""

    summary = "Streams N chunks of one artifact: `steps N [milliseconds between them]`."
    example = "steps 3 200"

    async def execute(self, run: Run, updates: Updates) -> None:
        count, pause = plan(run.text)
        if count > MAX_STEPS or pause > MAX_PAUSE_MS:
            text = f"At most {MAX_STEPS} steps, {MAX_PAUSE_MS} ms apart."
            await updates.status(TaskState.REJECTED, say(run, text))
            return
        await updates.status(TaskState.WORKING)
        for step in range(1, count + 1):
            await asyncio.sleep(pause / 1000)
            await updates.artifact(
                text_artifact(run, "steps", f"chunk {step}\n"), append=step > 1, last_chunk=step == count
            )
        await updates.status(TaskState.COMPLETED)


def plan(text: str) -> tuple[int, float]:
    """Number of steps and the pause before each in milliseconds. Text that is no command means the defaults."""
    given = numbers(text, "steps") or []
    count = int(given[0]) if given else DEFAULT_STEPS
    return count, given[1] if len(given) > 1 else DEFAULT_PAUSE_MS
