"""Threads of their own for files: a storage that does not answer holds nobody else up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_pool = ThreadPoolExecutor(16, thread_name_prefix="files")


async def in_thread(work: Callable[[], T]) -> T:
    """Do what blocks."""
    return await asyncio.get_running_loop().run_in_executor(_pool, work)
