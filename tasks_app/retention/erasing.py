"""Erasing everything of a principal or a context: cancelled first, then deleted, in batches that may stop anywhere.

Each step may be done again, so a run that was killed is taken up by the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import psycopg
from django.conf import settings
from django.db import transaction
from django.db.models import F

from agents.runtimes.base import Caller
from agents.threads import in_thread
from protocol.errors import A2AError, TaskNotCancelableError, TaskNotFoundError, UnavailableError
from protocol.requests import CancelTaskRequest
from protocol.timestamps import now
from tasks_app.content.removal import remove_parts_of
from tasks_app.execution.host import Host
from tasks_app.models import AuditEntry, Erasure
from tasks_app.operations import Call
from tasks_app.operations.tasks import cancel_task
from tasks_app.retention.connection import BACKUP, Connection, deleting_connection, held
from tasks_app.retention.deleting import ENDED, delete_ended, delete_ledger
from tasks_app.retention.scope import Scope
from tasks_app.retention.traces import delete_keys, delete_receipts, drop_counters, rename_usage

logger = logging.getLogger(__name__)

_ERASING = 0xA2A408  # With the id of the erasure, for pg_advisory_lock: one process at a time.
_CANCELLED_AT_ONCE = 20
_ROUNDS = 20  # How often tasks may appear while others are deleted, before the rest is left to the next run.


class UnfinishedError(Exception):
    """The erasure has not come to its end; the next run goes on. The message says why, for people."""


async def run_erasure(host: Host, erasure_id: int) -> Erasure:
    """Go on with an erasure to its end. Raises UnfinishedError; then the row says why."""
    async with deleting_connection() as connection, held(connection, _ERASING << 20 | erasure_id) as ours:
        if not ours:
            raise UnfinishedError("Another process is at it.")
        erasure = await in_thread(lambda: Erasure.objects.get(pk=erasure_id))
        if erasure.finished_at is not None:
            return erasure
        try:
            async with held(connection, BACKUP, shared=True) as allowed:
                if not allowed:
                    raise UnfinishedError("A backup is being made.")
                await _erase(host, connection, erasure)
        except UnavailableError as error:
            raise await _unfinished(erasure, "The database or the storage of files is away.") from error
        except psycopg.Error as error:
            raise await _unfinished(erasure, f"The database failed: {type(error).__name__}.") from error
        except UnfinishedError as error:
            raise await _unfinished(erasure, str(error)) from error
        return await in_thread(lambda: finish(erasure))


async def _unfinished(erasure: Erasure, problem: str) -> UnfinishedError:
    await in_thread(lambda: Erasure.objects.filter(pk=erasure.pk).update(problem=problem))
    return UnfinishedError(problem)


async def _erase(host: Host, connection: Connection, erasure: Erasure) -> None:
    scope = Scope.of(erasure)
    if erasure.with_keys:
        await in_thread(lambda: delete_keys(scope.owner))
    for _ in range(_ROUNDS):
        await _cancel_all(host, connection, scope)
        if not await _delete_all(host, connection, erasure, scope):
            break
    else:
        raise UnfinishedError("New tasks come while the others are deleted: disable the keys first.")
    if scope.is_person:
        while await delete_receipts(connection, scope, settings.RETENTION_BATCH):  # noqa: ASYNC110
            await asyncio.sleep(settings.RETENTION_PAUSE)
        await rename_usage(connection, scope.owner)
        await drop_counters(connection, scope.owner)


async def _cancel_all(host: Host, connection: Connection, scope: Scope) -> None:
    """Through the operation that callers have: the code stops wherever it runs, and streams and webhooks hear of it."""
    for _ in range(_ROUNDS):
        found = await _find(connection, scope, "unfinished")
        waiting = [task_id for task_id, state in found.items() if state not in ENDED]
        if not waiting:
            return
        await _cancel_some(host, waiting)
    raise UnfinishedError("Some tasks could not be cancelled.")


async def _cancel_some(host: Host, ids: Sequence[str]) -> None:
    for start in range(0, len(ids), _CANCELLED_AT_ONCE):
        await asyncio.gather(*(_cancel(host, task_id) for task_id in ids[start : start + _CANCELLED_AT_ONCE]))


async def _cancel(host: Host, task_id: str) -> None:
    record = await host.store.load(task_id)
    entry = host.registry.by_id(record.agent_id) if record is not None else None
    if record is None or entry is None:
        return
    call = Call(host, entry, Caller(record.owner, authenticated=True), "HOST/1.0")
    try:
        await cancel_task(call, CancelTaskRequest(id=task_id))
    except (TaskNotCancelableError, TaskNotFoundError):
        pass  # It has ended meanwhile.
    except UnavailableError:
        raise
    except A2AError as error:
        logger.warning("Task %s could not be cancelled yet: %s", task_id, type(error).__name__)


async def _delete_all(host: Host, connection: Connection, erasure: Erasure, scope: Scope) -> bool:
    """Whether there was anything to delete. Files go first: a row that is left finds its files again."""
    any_found = False
    while found := await _find(connection, scope, "ended"):
        any_found = True
        delegated = [task_id for task_id, state in found.items() if state not in ENDED]
        if delegated:
            await _cancel_some(host, delegated)
            break
        await remove_parts_of(host.store, list(found))
        gone = await delete_ended(connection, list(found))
        await delete_ledger(connection, list(gone))
        await _count(erasure, len(gone))
        await asyncio.sleep(settings.RETENTION_PAUSE)
        if len(gone) < len(found):  # Somebody is writing to the others.
            break
    return any_found


async def _find(connection: Connection, scope: Scope, states: str) -> dict[str, int]:
    parameters = {**scope.parameters, "limit": settings.RETENTION_BATCH}
    return dict(await (await connection.execute(scope.family_sql(states).encode(), parameters)).fetchall())


async def _count(erasure: Erasure, more: int) -> None:
    await in_thread(lambda: Erasure.objects.filter(pk=erasure.pk).update(tasks=F("tasks") + more))


@transaction.atomic
def finish(erasure: Erasure) -> Erasure:
    """Everything is gone: note that, and who wanted it."""
    Erasure.objects.filter(pk=erasure.pk).update(finished_at=now(), problem="")
    erasure.refresh_from_db()
    keys = ", with its API keys" if erasure.with_keys else ""
    AuditEntry.objects.create(
        actor=erasure.requested_by,
        action="data.erase",
        agent=erasure.agent,
        detail=f"Erased everything of {erasure.reference}: {erasure.tasks} tasks{keys}.",
    )
    return erasure


async def forget_names(names: Sequence[tuple[int, str]]) -> None:
    """Of finished erasures, given as (id, owner): once more the counters that a process may have had in its memory,
    and then the name itself."""
    if not names:
        return
    async with deleting_connection() as connection:
        for _, owner in names:
            if owner:
                await rename_usage(connection, owner)
    ids = [erasure_id for erasure_id, _ in names]
    await in_thread(lambda: Erasure.objects.filter(pk__in=ids).update(owner="", context_id=""))
