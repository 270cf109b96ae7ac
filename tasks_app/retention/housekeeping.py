"""What the worker does for retention, every few minutes and when an erasure was asked for."""

from __future__ import annotations

import logging
from datetime import timedelta

import psycopg
from django.conf import settings
from django.db.models import Q

from agents.threads import in_thread
from protocol.timestamps import now
from tasks_app.execution.host import Host
from tasks_app.models import Erasure
from tasks_app.retention.erasing import UnfinishedError, forget_names, run_erasure
from tasks_app.retention.keeping import apply_retention
from tasks_app.tables.usage import FLUSH_SECONDS

logger = logging.getLogger(__name__)

_FORGET_AFTER = timedelta(seconds=3 * FLUSH_SECONDS)


async def keep_house(host: Host) -> None:
    """Erase what is asked for, then delete what is kept no longer, for most of the time until the next call."""
    try:
        for erasure_id in await in_thread(_waiting):
            try:
                await run_erasure(host, erasure_id)
            except UnfinishedError as error:
                logger.warning("Erasure %d waits for its next run: %s", erasure_id, error)
        await forget_names(await in_thread(_finished))
        kept = await apply_retention(host.store, seconds=settings.RETENTION_SECONDS * 0.8)
        if kept.deleted:
            logger.info("Deleted %d tasks that are kept no longer", kept.deleted)
    except psycopg.OperationalError as error:
        logger.warning("Retention goes on in its next run: %s", type(error).__name__)


def _waiting() -> list[int]:
    return list(Erasure.objects.filter(finished_at=None).order_by("id").values_list("pk", flat=True))


def _finished() -> list[tuple[int, str]]:
    named = Q(owner__gt="") | Q(context_id__gt="")
    found = Erasure.objects.filter(named, finished_at__lt=now() - _FORGET_AFTER)
    return list(found.values_list("pk", "owner"))
