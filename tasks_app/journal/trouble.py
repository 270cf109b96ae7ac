"""When the database does not take what the journal gives it: what became of the write, and for how long it is so."""

from __future__ import annotations

import logging
import time

import psycopg

from tasks_app.tables.link import NotSentError

logger = logging.getLogger(__name__)


def leaves_outcome_open(error: Exception) -> bool:
    """Whether a statement that ended so may have been committed: the connection broke with it on its way."""
    if isinstance(error, NotSentError):
        return False
    if not isinstance(error, psycopg.Error) or error.sqlstate is None or error.sqlstate.startswith("08"):
        return True
    return error.diag.severity_nonlocalized in ("FATAL", "PANIC")  # The connection ends with it.


class Trouble:
    """From the first failure to the next success, or until nothing is left to write: then nobody knows whether it goes
    on. Each kind of failure is logged once."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._logged: set[str] = set()

    @property
    def seconds(self) -> float:
        """For how long it has lasted."""
        return time.monotonic() - self._since

    def note(self, error: psycopg.Error) -> None:
        """One more failure."""
        kind = type(error).__name__
        if kind in self._logged:
            return
        self._logged.add(kind)
        if error.sqlstate is None:
            logger.warning("The journal lost its connection: %s", kind)
        else:
            logger.error("The database does not take the journal's writes: %s, %s", kind, error.diag.message_primary)

    def end(self) -> None:
        """The database has taken a write."""
        logger.warning("The journal writes again, after %.1f s", self.seconds)

    def forget(self) -> None:
        """Nothing waits for the database any more."""
        logger.warning("The journal has nothing left to write, after %.1f s", self.seconds)
