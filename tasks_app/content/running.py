"""Big parts and the code of agents: it is given their content, and what it says is stored as callers' messages are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from agents.registry import AgentEntry
from protocol.errors import InvalidAgentResponseError, UnavailableError
from protocol.model import Artifact, Message, Part, Task
from protocol.stored_part import stored_part
from tasks_app.content.keeping import LimitExceededError, keep_parts
from tasks_app.content.restoring import fill, has_stored
from tasks_app.content.sources import NotBase64Error
from tasks_app.content.storage import FileGoneError, StorageDownError
from tasks_app.content.threads import in_thread
from tasks_app.tables.store import Store

H = TypeVar("H", Message, Artifact)

MISSING_TEXT = "A file that belongs to the task is not in the storage any more."
UNREADABLE_TEXT = "The storage of big content did not answer, so the agent could not be given the task."
UNSTORED_TEXT = "The storage of big content did not answer, so what the agent said could not be kept."


class OutputRefusedError(InvalidAgentResponseError):
    """What the agent said could not be stored."""


class InputMissingError(Exception):
    """The agent cannot be given all of its task."""


async def keep_output(store: Store, entry: AgentEntry, task_id: str, said: H) -> H:
    """A message or artifact of an agent with its big parts in files. Waits for the database, as every result does: the
    run's deadline cancels it. Raises OutputRefusedError in words for callers."""
    try:
        kept = await keep_parts(store, entry, task_id, said.parts, patient=True)
    except LimitExceededError as error:
        raise OutputRefusedError(f"The agent said more than is kept: part {error.index + 1} {error}.") from error
    except NotBase64Error as error:
        raise OutputRefusedError(f"The agent sent part {error.index + 1} with a content that is no base64.") from error
    except UnavailableError as error:
        raise OutputRefusedError(UNSTORED_TEXT) from error
    return msgspec.structs.replace(said, parts=kept.parts)


async def fill_input(*values: Message | Task | None) -> None:
    """Put the content of stored parts into what an agent is given. Raises InputMissingError in words for callers."""
    present = [value for value in values if value is not None]
    if not has_stored(present):
        return
    try:
        await in_thread(lambda: fill(present))
    except FileGoneError as error:
        raise InputMissingError(MISSING_TEXT) from error
    except StorageDownError as error:
        raise InputMissingError(UNREADABLE_TEXT) from error


def holds_stored(parts: Sequence[Part]) -> bool:
    """Whether content of these parts is in files."""
    return any(isinstance(part.raw, str) and stored_part(part) is not None for part in parts)
