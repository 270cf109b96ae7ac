"""Memory that was freed and stays with the process all the same."""

from __future__ import annotations

import asyncio
import ctypes

_libc = ctypes.CDLL(None)
_SOON_SECONDS = 0.5
_soon: asyncio.TimerHandle | None = None


def give_back_soon() -> None:
    """Return freed memory to the system in a moment, once for all who ask meanwhile.

    For who reads much in small pieces, as gRPC does: the C library keeps their places, here for an upload's size.
    """
    global _soon
    if _soon is None and hasattr(_libc, "malloc_trim"):  # It is glibc's.
        _soon = asyncio.get_running_loop().call_later(_SOON_SECONDS, _begin)


def _begin() -> None:
    global _soon
    _soon = None
    asyncio.get_running_loop().run_in_executor(None, _libc.malloc_trim, 0)
