"""Identifiers made by the host."""

from __future__ import annotations

import os
import threading
import time

# UUIDv7 (RFC 9562 §5.7) without version and variant: 48 bits of milliseconds, then 74 random ones.
_RANDOM_BITS = 74
_STEP_MASK = (1 << 60) - 1
_LOW_MASK = (1 << 62) - 1

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A UUIDv7 as text. Later ones of a process sort after earlier ones, also within a millisecond and across threads.

    Ids cannot be guessed from each other: an open agent's tasks are reached by their id alone.
    """
    global _last
    entropy = int.from_bytes(os.urandom(10), "big") >> (80 - _RANDOM_BITS)
    fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | entropy
    with _lock:
        # RFC 9562 §6.2, method 2: within a millisecond (or when the clock went back) count on by a random step.
        value = _last = fresh if fresh > _last else _last + 1 + (entropy & _STEP_MASK)
    return _text(value)


def _text(value: int) -> str:
    high, low = value >> 62, value & _LOW_MASK
    number = (high >> 12) << 80 | 7 << 76 | (high & 0xFFF) << 64 | 2 << 62 | low
    digits = number.to_bytes(16, "big").hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
