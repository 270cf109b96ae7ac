"""Which errors of the database another try may not give."""

from __future__ import annotations

import psycopg
from psycopg.errors import ReadOnlySqlTransaction

# Classes of SQLSTATE that another try may not give: connection exceptions, rollbacks such as deadlocks, no disk space
# or memory, locks, an operator's cancel or shutdown, input and output.
_PASSING_CLASSES = ("08", "40", "53", "55", "57", "58")


def may_pass(error: Exception) -> bool:
    """Whether the same statement may be taken another time; otherwise it is the statement that the database refuses."""
    if isinstance(error, ReadOnlySqlTransaction):  # A standby, or a server that was closed to writes.
        return True
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state[:2] in _PASSING_CLASSES
