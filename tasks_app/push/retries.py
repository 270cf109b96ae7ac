"""When a webhook is tried again, and when it is given up."""

from __future__ import annotations

import zlib
from datetime import timedelta

FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 1.0, 3600.0
GIVE_UP = timedelta(hours=24)
"""How long a webhook may fail before nothing is sent to it any more."""


def retry_after(attempts: int, name: str) -> timedelta:
    """How long to wait after so many failures in a row: twice as long each time, up to an hour.

    `name` is the config's: each one waits for a share of its own between half of that and all of it, so that those
    which failed together do not come back together, and yet no gap of one config is shorter than the one before it.
    """
    longest = min(FIRST_RETRY_SECONDS * 2.0 ** min(attempts - 1, 20), LAST_RETRY_SECONDS)
    return timedelta(seconds=longest * (0.5 + 0.5 * zlib.crc32(name.encode()) / 0xFFFFFFFF))


def reason_of(status: int | None, error: str) -> tuple[str, str]:
    """Why a failed attempt disables a webhook: at once ("" if it does not), whatever was sent, or because it was the
    last one that its events had."""
    at_once = "The receiver says that the address is gone for good (HTTP 410)." if status == 410 else ""
    return at_once, f"No event could be delivered for {GIVE_UP / timedelta(hours=1):.0f} hours. The last error: {error}"
