"""What is wrong with an agent's code, in words for the person who registers it."""

from __future__ import annotations


class ExecutorError(Exception):
    """The code that an agent names cannot be loaded. The text holds no path and no traceback."""
