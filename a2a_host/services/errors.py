"""What keeps the services from starting or running."""

from __future__ import annotations


class ServiceError(Exception):
    """A service cannot start or go on. The message is one line that says what to do."""
