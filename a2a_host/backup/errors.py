"""What keeps a backup from being made or restored."""

from __future__ import annotations


class BackupError(Exception):
    """The message is one line that says what to do. Nothing was changed."""
