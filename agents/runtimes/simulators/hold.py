"""`hold [seconds]`: works until it is told to stop."""

from __future__ import annotations

import asyncio

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import Simulator, numbers
from protocol.states import TaskState


class Hold(Simulator):
    """WORKING until cancelled or, with a number, until that many seconds are over: COMPLETED."""

    summary = "Works until it is cancelled, or for a time: `hold [seconds]`."
    example = "hold 5"

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        seconds = numbers(run.text, "hold")
        if seconds:
            await asyncio.sleep(seconds[0])
            await updates.status(TaskState.COMPLETED)
        else:
            await asyncio.get_running_loop().create_future()
