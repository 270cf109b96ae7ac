"""What the simulators share. A simulator is deterministic: the text of a message says what it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from agents.runtimes.base import Run, Updates
from protocol.ids import new_id
from protocol.model import Artifact, Message, Part, Role
from protocol.states import TaskState

TEXT_MODES = ("text/plain",)
ANY_MODES = ("*/*",)
MAX_WORDS = 5
MAX_DIGITS = 9


class Simulator(ABC):
    """An agent without a model behind it, for tests and first steps. Subclasses say what their card says.

    Artifact ids derive from the task id: unique across tasks, and the same again when a task is run again, which makes
    a simulator `repeatable`.
    """

    repeatable: ClassVar[bool] = True
    summary: ClassVar[str]
    example: ClassVar[str]
    input_modes: ClassVar[tuple[str, ...]] = TEXT_MODES
    output_modes: ClassVar[tuple[str, ...]] = TEXT_MODES
    decides_refusals: bool = False

    @abstractmethod
    async def execute(self, run: Run, updates: Updates) -> None:
        """Do what the text says."""

    async def cancel(self, run: Run, updates: Updates) -> None:
        """Nothing to clean up: the task is CANCELED."""
        await updates.status(TaskState.CANCELED)


def say(run: Run, text: str) -> Message:
    """A message of the agent in the run's task and context."""
    return Message(
        message_id=new_id(),
        role=Role.AGENT,
        parts=[Part(text=text)],
        context_id=run.context_id,
        task_id=run.task_id,
    )


def text_artifact(run: Run, name: str, text: str) -> Artifact:
    """An artifact with one text part; one `name` is one artifact of the task."""
    return Artifact(artifact_id=f"{run.task_id}.{name}", name=name, parts=[Part(text=text)])


def numbers(text: str, *names: str) -> list[float] | None:
    """The numbers of a command such as `steps 3 50` or only `3`; [] when it has none, None for any other text.

    `names` are the words that may stand before the numbers, each optional, in this order.
    """
    words = text.split(maxsplit=MAX_WORDS)
    for name in names:
        if words and words[0].lower() == name:
            words.pop(0)
    if not all(is_number(word) for word in words):
        return None
    return [float(word) for word in words]


def is_number(word: str) -> bool:
    """Whether a word is a plain decimal number, short enough for a delay or a count."""
    return len(word) <= MAX_DIGITS and word.isascii() and word.replace(".", "", 1).isdecimal()
