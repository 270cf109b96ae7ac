"""Storing big parts: measured, counted against the limits, written to files, and only then named in a body.

The rows are written first, in a transaction that holds a lock: what is on its way counts like what is there, so no
number of writers gets beyond a limit. A write that is refused takes its rows and files back; one that is cancelled, or
whose process dies, leaves them to `unnamed`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from django.conf import settings

from agents.registry import AgentEntry
from protocol.errors import A2AError, UnavailableError
from protocol.ids import new_id
from protocol.model import Part
from protocol.stored_part import START_MAX, Held, Kind, StoredPart, size_of
from protocol.timestamps import now
from tasks_app.content import storage
from tasks_app.content.removal import forget
from tasks_app.content.sources import NotBase64Error, Source, source_of
from tasks_app.content.threads import in_thread
from tasks_app.tables.loader import RETRY_SECONDS
from tasks_app.tables.passing import may_pass
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

_LOCKS = 0xA2A7  # the first half of the keys of the advisory locks; the second is the agent, or a hash of the task
_LOCK_AGENT = "SELECT pg_advisory_xact_lock(%s, %s)"
_LOCK_TASK = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"
# Indexes: stored_part_of_task, and stored_part_of_agent, which has the sizes.
_TASK_BYTES = "SELECT coalesce(sum(size), 0)::bigint FROM tasks_app_storedpart WHERE task_id = %s"
_AGENT_BYTES = "SELECT coalesce(sum(size), 0)::bigint FROM tasks_app_storedpart WHERE agent_id = %s"
_INSERT = """INSERT INTO tasks_app_storedpart
    (id, agent_id, task_id, name, size, digest, media_type, filename, created_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_UNDO = "DELETE FROM tasks_app_storedpart WHERE id = ANY(%s)"


class LimitExceededError(Exception):
    """More bytes in files than the agent allows. `index` is that of the part that is too much."""

    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index


@dataclass(frozen=True, slots=True)
class _Measured:
    """A part that is to be stored, with what was found out about it by going through it once."""

    index: int
    part: Part
    id: str
    kind: Kind
    source: Source
    size: int
    digest: str


@dataclass(slots=True)
class Kept:
    """`parts` have placeholders for what was stored under `ids`."""

    parts: list[Part]
    ids: list[str]


def has_big(parts: Sequence[Part]) -> bool:
    """Whether a part is too big for a body. Of small ones this is all that the feature costs."""
    limit = settings.STORED_PART_BYTES
    for part in parts:
        text = part.text
        if isinstance(text, str):
            if len(text) * 4 > limit and size_of(part) > limit:  # a character has at most four bytes
                return True
        elif size_of(part) > limit or isinstance(part.raw, Held):
            return True
    return False


async def keep_parts(
    store: Store, entry: AgentEntry, task_id: str, parts: Sequence[Part], *, patient: bool = False
) -> Kept:
    """Store the big ones of the parts of one message or artifact for a task, which need not exist yet.

    When this returns the files are there to stay. Raises LimitExceededError, NotBase64Error, StorageDownError,
    UnavailableError; then nothing was stored. If it is cancelled, files may be stored yet, which have rows.
    `patient`: it waits for a database that is away or takes no writes, for as long as that takes.
    """
    found = await in_thread(lambda: _measure(parts))
    await _reserve(store, entry, task_id, found, patient)
    ids = [one.id for one in found]
    try:
        await in_thread(lambda: _write(found))
    except Exception:  # Not if it is cancelled: the thread goes on and writes files, which need their rows.
        await discard(store, ids)
        raise
    kept = list(parts)
    for one in found:
        kept[one.index] = _stand_in(one)
    return Kept(kept, ids)


async def discard(store: Store, ids: Sequence[str]) -> None:
    """Take back what was stored for a write that was lost. What cannot be deleted now is found later."""
    try:
        await forget(store, ids)
    except A2AError as error:
        logger.warning("%d files have to wait to be deleted: %s", len(ids), error.message)


def _is_big(part: Part) -> bool:
    return isinstance(part.raw, Held) or size_of(part) > settings.STORED_PART_BYTES


def _measure(parts: Sequence[Part]) -> list[_Measured]:
    found = []
    for index, part in enumerate(parts):
        if _is_big(part):
            kind, source = source_of(part)
            known = part.raw.digest if isinstance(part.raw, Held) else ""
            found.append(_Measured(index, part, new_id(), kind, source, source.size, known or _digest(index, source)))
    return found


def _digest(index: int, source: Source) -> str:
    digest = hashlib.sha256()
    try:
        for chunk in source.chunks():
            digest.update(chunk)
    except ValueError:
        raise NotBase64Error(index) from None
    return digest.hexdigest()


async def _reserve(store: Store, entry: AgentEntry, task_id: str, found: Sequence[_Measured], patient: bool) -> None:
    """Write the rows, if there is room."""
    again = False
    while True:
        try:
            await _try_to_reserve(store, entry, task_id, found, again)
        except psycopg.Error as error:
            if not may_pass(error):
                raise
            if not patient:
                raise UnavailableError(retry_after=5) from error
            if not again:
                logger.warning("Files of task %s wait for the database: %s", task_id, type(error).__name__)
            again = True
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return


async def _try_to_reserve(
    store: Store, entry: AgentEntry, task_id: str, found: Sequence[_Measured], again: bool
) -> None:
    """`again`: the rows may be there, as nobody heard how the try before ended."""
    at = now()
    rows = [
        (o.id, entry.id, task_id, storage.name_of(o.id), o.size, o.digest, _type_of(o), o.part.filename, at)
        for o in found
    ]
    async with store.connection() as connection, connection.transaction():
        if entry.max_stored_bytes is not None:
            await connection.execute(_LOCK_AGENT, [_LOCKS, entry.id % 2**31])
        await connection.execute(_LOCK_TASK, [_LOCKS + 1, task_id])
        if again:
            await connection.execute(_UNDO, [[o.id for o in found]])
        _check_room(found, await _bytes(connection, _TASK_BYTES, task_id), entry.max_task_bytes, "task")
        if entry.max_stored_bytes is not None:
            _check_room(found, await _bytes(connection, _AGENT_BYTES, entry.id), entry.max_stored_bytes, "agent")
        async with connection.cursor() as cursor:
            await cursor.executemany(_INSERT, rows)


async def _bytes(connection: psycopg.AsyncConnection, statement: str, key: str | int) -> int:
    row = await (await connection.execute(statement.encode(), [key])).fetchone()
    return int(row[0]) if row else 0


def _check_room(found: Sequence[_Measured], there: int, most: int, whose: str) -> None:
    """Raises LimitExceededError for the first part that does not fit."""
    limit = "max_task_bytes" if whose == "task" else "max_stored_bytes"
    for one in found:
        there += one.size
        if there > most:
            text = f"would bring the files of the {whose} to {there} bytes; at most {most} are allowed ({limit})"
            raise LimitExceededError(one.index, text)


def _type_of(one: _Measured) -> str:
    """What the file is, also where the part says nothing of it."""
    return one.part.media_type or {"text": "text/plain", "data": "application/json", "raw": ""}[one.kind]


def _write(found: Sequence[_Measured]) -> None:
    for one in found:
        storage.write(one.id, one.source)


def _stand_in(one: _Measured) -> Part:
    start = str(one.part.text)[:START_MAX] if one.kind == "text" else ""
    return StoredPart(one.kind, one.id, one.size, start).stand_in(one.part)
