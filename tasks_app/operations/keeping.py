"""Storing the big parts of a caller's message, with errors that name them in the request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from protocol.errors import A2AError, InvalidParamsError, Violation
from protocol.model import Message
from protocol.requests import SendMessageRequest
from protocol.stored_part import Held
from tasks_app.content.fingerprints import fingerprint
from tasks_app.content.keeping import LimitExceededError, discard, keep_parts
from tasks_app.content.sources import NotBase64Error
from tasks_app.content.threads import in_thread
from tasks_app.operations.call import Call

T = TypeVar("T")


async def big_fingerprint(request: SendMessageRequest) -> str:
    """`codec.fingerprint` of a request with big parts. Raises InvalidParamsError for what is no base64."""
    try:
        return await in_thread(lambda: fingerprint(request))
    except NotBase64Error as error:
        raise await _refusal(request.message, error.index) from None


async def keep_big_parts(call: Call, message: Message) -> list[str]:
    """Store the big parts of a message of the task that it names, and put placeholders in their place.

    Returns their ids, for `or_discard`. Raises InvalidParamsError for what is no base64 or is beyond a limit,
    StorageDownError, UnavailableError; then nothing was stored.
    """
    try:
        kept = await keep_parts(call.host.store, call.entry, message.task_id, message.parts)
    except LimitExceededError as error:
        raise InvalidParamsError([Violation(f"message.parts[{error.index}]", str(error))]) from None
    except NotBase64Error as error:
        raise await _refusal(message, error.index) from None
    message.parts = kept.parts
    return kept.ids


async def or_discard(call: Call, ids: list[str], work: Awaitable[T], used: Callable[[T], bool]) -> T:
    """What `work` gives. The files are deleted if it fails, or if it has not `used` them.

    Not if it is cancelled: then what it began may be stored yet, and files that nobody names are found later.
    """
    try:
        result = await work
    except A2AError:
        await discard(call.host.store, ids)
        raise
    if not used(result):
        await discard(call.host.store, ids)
    return result


async def _refusal(message: Message, index: int) -> A2AError:
    """Why a part is refused whose content is no base64, as the reader of the request says it."""
    raw = message.parts[index].raw
    if isinstance(raw, Held) and raw.reread is not None:
        try:
            await in_thread(raw.reread)
        except A2AError as error:
            return error
    return InvalidParamsError([Violation(f"message.parts[{index}].raw", "must be base64")])
