"""How many files a process may have open: each stream is one."""

from __future__ import annotations

import logging
import resource

logger = logging.getLogger(__name__)

_MOST = 1_048_576  # what Linux allows without more ado; some systems say that there is no limit
_FEW = 8192
_OWN = 100
"""Files that a process has open beside connections of callers: databases, logs, agents' own."""


def raise_limit() -> int:
    """Raise the limit as far as it goes, and return how many connections of callers fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft == resource.RLIM_INFINITY or soft >= files:
        files = _MOST if soft == resource.RLIM_INFINITY else soft
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    if files < _FEW:
        logger.warning(
            "Only %d files may be open here, so at most %d connections and streams: raise the hard limit (ulimit -Hn)",
            files,
            max(files - _OWN, 1),
        )
    return max(files - _OWN, 1)
