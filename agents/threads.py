"""The ORM from the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Run ORM code in asgiref's thread, with a connection that works and is not kept.

    Outside of HTTP requests nobody else closes connections: one that PostgreSQL dropped would fail for ever, and one
    that works would stay open for the next change, hours later.
    """

    def run() -> T:
        close_old_connections()
        try:
            return work()
        finally:
            close_old_connections()

    return await sync_to_async(run)()
