"""`direct`: answers without a task."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.simulators.common import Simulator
from protocol.ids import new_id
from protocol.model import Message, Part, Role


class Direct(Simulator):
    """One Message with the same text and no task (§3.1.1)."""

    summary = "Answers with a message instead of a task."
    example = "hello"

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.reply(
            Message(message_id=new_id(), role=Role.AGENT, parts=[Part(text=run.text)], context_id=run.context_id)
        )
