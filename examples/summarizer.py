"""An agent in one file: it picks the sentences that say most of a text and streams them, the most telling first.

It is an ordinary executor of the a2a-sdk. Nothing in it knows of the host that runs it:

    AGENTS_DIR=$PWD/examples make up

and in another terminal, or with the same fields in the admin under Agents > Add agent:

    AGENTS_DIR=$PWD/examples .venv/bin/python manage.py agent register summarizer \\
        --executor summarizer.Summarizer --open --skill "summarize:Summarize:Picks the sentences that say most."

AGENTS_DIR is the folder that holds this file; the executor is named by module and class. Try it:

    curl -N http://127.0.0.1:8000/agents/summarizer -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d '{
      "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": {
        "messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "Paste a page of text here."}]}}}'

A text that is too short gets a question back (INPUT_REQUIRED); the answer continues the same task.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Part

SHORTEST = 3
"""Sentences that a text must have at least."""
PICKED = 3
"""Sentences of a summary."""
PAUSE = 0.1
"""Seconds before each sentence. A model would think here; callers see each sentence when it is there."""


class Summarizer(AgentExecutor):
    """Picks the sentences that say most of a text."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """One turn: ask for a longer text, or stream the summary sentence by sentence and complete the task."""
        assert context.message
        assert context.task_id
        assert context.context_id
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        await task.start_work()

        sentences = split(context.get_user_input())
        if len(sentences) < SHORTEST:
            question = f"Send me the text to summarize, {SHORTEST} sentences or more."
            await task.requires_input(task.new_agent_message([Part(text=question)]))
            return

        picked = pick(sentences)
        for number, sentence in enumerate(picked, start=1):
            await asyncio.sleep(PAUSE)
            await task.add_artifact(
                [Part(text=f"- {sentence}\n", media_type="text/markdown")],
                artifact_id="summary",
                name="Summary",
                append=number > 1,
                last_chunk=number == len(picked),
            )
        await task.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing to clean up."""
        assert context.task_id
        assert context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def split(text: str) -> list[str]:
    """Sentences of a text, also of a Chinese one."""
    return [sentence.strip() for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", text) if sentence.strip()]


def pick(sentences: list[str]) -> list[str]:
    """The sentences whose words come up most often in the whole text."""
    counts = Counter(word for sentence in sentences for word in words(sentence))

    def weight(sentence: str) -> float:
        found = words(sentence)
        return sum(counts[word] - 1 for word in found) / len(found) if found else 0.0

    return sorted(sentences, key=weight, reverse=True)[:PICKED]


def words(sentence: str) -> set[str]:
    """Words of four letters or more; in scripts without spaces, characters."""
    return set(re.findall(r"[^\W\d_]{4,}|[\u4e00-\u9fff]", sentence.lower()))
