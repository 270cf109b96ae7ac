"""The ORM from the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Run ORM code in asgiref's thread, with a connection that works and is not kept.

    Outside of HTTP requests nobody else closes connections: one that PostgreSQL dropped would fail for ever, and one
    that works would stay open for the next change, hours later.
    """

    def run() -> T:
        _close_old_connections()
        try:
            return work()
        finally:
            _close_old_connections()

    return await sync_to_async(run)()


def _close_old_connections() -> None:
    """Django's `close_old_connections`, which also ends a transaction that the thread is in, without that."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
