"""Keeping what a process knows of agents and keys true: a key that was revoked must not go on opening doors.

A change is announced, and read at once. A read that fails is tried again, and a look now and then finds a change whose
announcement was lost, as on a connection that is half open.
"""

from __future__ import annotations

import asyncio
import logging

from django.db import DatabaseError

from agents.fingerprint import FINGERPRINT
from agents.registry import Registry
from protocol.errors import UnavailableError
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
_RETRY_SECONDS = 1.0


class Refreshing:
    """Of the registry of one process."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self._registry = registry
        self._store = store
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Begin, with a registry that was read; gives the task that does."""
        self._task = asyncio.create_task(self._refresh_forever(), name="reader of agents and keys")
        return self._task

    def stop(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()

    def announced(self, _: str) -> None:
        """Something changed: read it now."""
        self._due.set()

    async def _refresh_forever(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._due.wait()
            except TimeoutError:
                pass
            try:
                await self._refresh()
            except (UnavailableError, DatabaseError) as error:
                logger.warning("Changes of agents and keys wait for the database: %s", type(error).__name__)
                await self._try_again()
            except Exception:
                logger.exception("Changes of agents and keys could not be read, and are tried again")
                await self._try_again()

    async def _refresh(self) -> None:
        if self._due.is_set() or await self._is_behind():
            self._due.clear()
            await self._registry.load()

    async def _is_behind(self) -> bool:
        rows = await self._store.query(FINGERPRINT, [])
        return bool(rows[0][0] != self._registry.fingerprint)

    async def _try_again(self) -> None:
        self._due.set()
        await asyncio.sleep(_RETRY_SECONDS)
